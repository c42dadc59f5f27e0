// A convolution or product whose data are copied first into the order in which the register tiles
// read them: im2col and a matrix product (Chellapilla et al., 2006), or for a product without a
// window the packed panels of GotoBLAS. R is computed inside its epilogue E as ever
// (make_contraction.cc); the copy is a phase of its own, or that of a block of rows at the head of
// E's parallel loop:
//
//   parallel blocks of rows:
//     data.col: the block's rows, in panels of a register tile's columns by lanes of the sum
//     R and E as in make_contraction.cc
//
// It may pay where a tile's columns lie apart: a stride, or lines that share the sets of a cache.
#include <algorithm>
#include <numeric>

#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::Steps;

constexpr int64_t kLeastSum = 24;     // elements of a sum, below which copying them cannot pay
constexpr int64_t kLeastColumns = 4;  // likewise
constexpr int64_t kWayBytes = 4096;   // of a way of the first-level cache: a page

class Im2colGroup : public Group {
 public:
  std::shared_ptr<Contraction> product;
  std::string stage;               // that copies
  std::vector<std::string> outer;  // its axes of results but the columns
  std::string column;              // the axis of the register tile's columns
  std::vector<std::string> sums;   // its reduce axes, the longest last
  int64_t longest = 1;             // extent of that
  DecisionId d_place;              // 0: a phase of its own, 1: inside E's parallel loop

  [[nodiscard]] bool legal(const Choice& choice) const override {
    if (!product->legal(choice)) return false;
    const bool by_rows = product->value(choice, TileDecisions::kOrder) == 0 &&
                         product->value(choice, TileDecisions::kParallel) == 1;
    return choice[d_place] == 0 || by_rows;
  }
  void set_default(MutableChoice& choice) const override {
    product->set_default(choice);
    choice.set(d_place, 1);
    if (choice[d_place] == 0) return;
    choice.set(product->decisions[TileDecisions::kOrder], 0);
    choice.set(product->decisions[TileDecisions::kParallel], 1);
  }
  void canonicalise(MutableChoice& choice) const override {
    product->canonicalise(choice, product->whole(), choice[d_place] == 0);
  }
  void append_steps(const Choice& choice, Steps& steps) const override {
    product->append_steps(choice, steps);
    const bool inside = choice[d_place] == 1;
    if (inside)
      steps.emplace_back(schedule::ComputeAt{stage, product->epilogue, product->rows_loop()});
    append_copy(product->tile_of(choice).columns, inside, steps);
  }

 private:
  // Panels of `columns` columns: one vector of the sum's longest axis for each, one behind the
  // other. A short sum has its columns side by side.
  void append_copy(int64_t columns, bool inside, Steps& steps) const {
    const bool along_sum = longest >= product->lanes / 2;
    const std::string &last = sums.back(), panel = column + ".0", place = column + ".1";
    steps.emplace_back(schedule::Split{stage, column, {columns}, schedule::Tail::kMask});
    std::vector<std::string> parallel = outer;
    parallel.push_back(panel);
    LoopNest loops{.outer = parallel};
    std::vector<std::string> dims = outer;
    dims.push_back(columns > 1 ? quotient(column, columns) : column);
    for (size_t i = 0; i + 1 < sums.size(); ++i) {
      loops.outer.push_back(sums[i]);
      dims.push_back(sums[i]);
    }
    const std::string within = remainder(column, columns);
    if (along_sum) {
      steps.emplace_back(schedule::Split{stage, last, {product->lanes}, schedule::Tail::kMask});
      loops.outer.push_back(last + ".0");
      loops.unrolled = {place};
      loops.vector = last + ".1";
      dims.push_back(quotient(last, product->lanes));
      if (columns > 1) dims.push_back(within);
      dims.push_back(remainder(last, product->lanes));
    } else {
      loops.outer.push_back(last);
      loops.vector = place;
      dims.push_back(last);
      if (columns > 1) dims.push_back(within);
    }
    append_nest(stage, loops, steps);
    if (!inside) steps.emplace_back(schedule::Parallel{stage, fuse_loops(stage, parallel, steps)});
    steps.emplace_back(schedule::Layout{stage, std::move(dims)});
  }
};

// The operand that all lanes share; null if there is none whose sum is long enough.
const compute::Access* shared_operand(const schedule::State& state, const StageInfo& r,
                                      int vector) {
  if (r.reads.size() != 2) return nullptr;
  for (const compute::Access& read : r.reads) {
    const ir::Param* param = state.find_param(read.buffer);
    if (moves(read, vector) || (param && param->role == ir::Role::kConstant)) continue;
    int64_t sum = 1;
    for (int a = r.num_spatial(); a < static_cast<int>(r.axes.size()); ++a)
      sum *= moves(read, a) ? r.axes[static_cast<size_t>(a)].extent : 1;
    if (sum >= kLeastSum) return &read;
  }
  return nullptr;
}

// Neighbours along the axis have others of a window between them, or lie in one or two sets of the
// first-level cache.
bool lie_apart(const compute::Access& read, int axis, bool window) {
  int64_t stride = static_cast<int64_t>(dtype_bytes(read.buffer->dtype)), distance = 0;
  bool steps = false;
  for (size_t d = read.index.size(); d-- > 0;) {
    const int64_t step = read.index[d].coef[static_cast<size_t>(axis)];
    steps = steps || step > 1;
    distance += step * stride;
    stride *= read.buffer->shape[d];
  }
  return (window && steps) || std::gcd(distance, kWayBytes) * 2 >= kWayBytes;
}

}  // namespace

Fit add_im2col(SketchBuilder& builder, const Task& task) {
  const std::string &epilogue = task.epilogue, &reduction = task.reduction;
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(reduction);
  const int vector = unit_stride_axis(*e);
  const auto names = match_axes(*e, *r);
  if (vector < 0 || !names) return Fit::kNone;
  const compute::Access* operand =
      shared_operand(builder.state, *r, axis_named(*r, (*names)[static_cast<size_t>(vector)]));
  if (!operand || !builder.add_step(schedule::Im2col{reduction, operand->buffer->name}).ok())
    return Fit::kNone;
  auto group = std::make_shared<Im2colGroup>();
  group->product =
      make_contraction(builder, epilogue, reduction, {.fixed_groups = true, .blocks = true});
  if (!group->product || group->product->roles.column < 0) return Fit::kNone;
  const Contraction& product = *group->product;
  if (product.whole().columns < kLeastColumns) return Fit::kNone;
  group->column = product.reduction_names[static_cast<size_t>(product.roles.column)];
  if (!lie_apart(*operand, axis_named(*r, group->column), product.taps() > 1)) return Fit::kNone;
  const int reader = builder.state.find_stage(reduction);
  for (int s = 0; s < reader; ++s) {
    const StageInfo& copy = *builder.state.stages[static_cast<size_t>(s)].info;
    if (copy.constant) continue;
    group->stage = copy.stage.name;
    const auto has = [&](const std::string& name) { return axis_named(copy, name) >= 0; };
    if (!has(group->column) || !has(product.reduce.back().var->name)) return Fit::kNone;
    for (size_t a = 0; a < product.axes.size(); ++a) {
      const std::string& name = product.reduction_names[a];
      if (static_cast<int>(a) != product.roles.column && has(name)) group->outer.push_back(name);
    }
    for (const compute::Axis& axis : product.reduce) {
      if (has(axis.var->name)) group->sums.push_back(axis.var->name);
    }
  }
  group->longest = product.reduce.back().extent;
  group->d_place = builder.add_decision(
      epilogue, "copy", DecisionKind::kPacking,
      product.roles.row >= 0 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
  builder.groups.push_back(std::move(group));
  return Fit::kPossible;
}

}  // namespace hone::space
