// Reductions along rows, and what is computed with them (softmax, normalisation, a mean over the
// last axis): one task, one pass over memory. A row stays in the cache while all stages run over
// it; rows run in parallel.
//
//   parallel rows (one, or a few at once; or blocks of neighbouring columns):
//     each reduction over the row, vectorized
//     the result of the row, vectorized
#include "hone/space/rules/cpu/rows.h"

#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/ir/linear.h"
#include "hone/space/rules/cpu/loop_nest.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::State;
using schedule::Steps;

constexpr int64_t kShortRow = 16;
// Of a row, up to which four, or two, at once were faster (docs/studies/other_operators.md).
constexpr int64_t kFewVectors = 4, kSomeVectors = 8, kManyVectors = 64;
constexpr int64_t kTilesPerCore = 4;  // at least, so that cores end together

bool has_axis(const StageInfo& info, const std::string& name) {
  return std::any_of(info.stage.axes.begin(), info.stage.axes.end(),
                     [&](const compute::Axis& axis) { return axis.var->name == name; });
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Rows : public Group {
 public:
  struct Inner {
    std::string stage;
    LoopNest loops;  // none of a scalar
    std::vector<std::string> axes;
    bool keeps_one = false;  // element for each column
  };
  std::string root;
  std::vector<std::string> outer, row;  // the root's axes; `column` is in neither
  std::vector<int64_t> extents;         // of `outer`
  std::string column;              // the axis that lanes run along if it is no row's; "" otherwise
  std::vector<Inner> inner;        // topological order
  int64_t lanes = 8, columns = 1;  // columns: points of that axis
  int64_t length = 1;              // elements of a row
  int reductions = 0;              // along it
  bool functions = false;          // of each element, as a softmax's exponentials
  int64_t result_bytes = 0;
  int64_t near_bytes = INT64_MAX;  // of results that are computed more slowly than they are moved
  int cores = 1;
  DecisionId d_vectors, d_tail;  // of a block of columns; how the last block is run
  DecisionId d_rows;             // at once

  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(MutableChoice& choice) const override {
    choice.set(d_vectors, 2);
    choice.set(d_tail, 1);
    choice.set(d_rows, usual_rows());
  }
  void canonicalise(MutableChoice& choice) const override {
    choice.shorten(d_vectors, ceil_div(columns, lanes));
    if (!has_rest(choice)) choice.set_index(d_tail, 0);
  }

  // As many at once as were no slower than one, of what is computed and of so long rows; while one
  // waits for its sums another one computes. Where they wait for memory, one at a time is better
  // fetched ahead.
  [[nodiscard]] int64_t most_at_once() const {
    const int64_t vectors = (length + lanes - 1) / lanes;
    if (functions) return vectors <= kFewVectors ? 4 : vectors <= 2 * kSomeVectors ? 2 : 1;
    if (reductions < 2 || result_bytes > near_bytes) return 1;
    return vectors <= kManyVectors ? 4 : vectors <= 4 * kManyVectors ? 2 : 1;
  }

  void append_steps(const Choice& choice, Steps& steps) const override {
    const int64_t at_once = choice[d_rows];
    LoopNest loops{.outer = outer, .parallel = outer.size() + (column.empty() ? 0 : 1)};
    std::string several;  // the axis of the rows at once
    if (!column.empty()) {
      const bool tests = choice.or_zero(d_tail) == 1 && has_rest(choice);
      const auto tail = tests ? schedule::Tail::kTest : schedule::Tail::kMask;
      steps.push_back(schedule::Split{root, column, {choice[d_vectors] * lanes}, tail});
      loops.outer.push_back(column + ".0");
      loops.vector = column + ".1";
    } else if (at_once > 1) {
      const size_t axis = axis_of(at_once);
      several = outer[axis];
      const bool whole = extents[axis] % at_once == 0;
      steps.push_back(schedule::Split{
          root, several, {at_once}, whole ? schedule::Tail::kMask : schedule::Tail::kTest});
      loops.outer[axis] += ".0";
      loops.unrolled = {several + ".1"};
    }
    loops.outer.insert(loops.outer.end(), row.begin(), row.end());
    if (column.empty() && !row.empty()) {
      loops.vector = row.back();
      loops.outer.pop_back();
    }
    const std::string fused = append_nest(root, loops, steps);
    for (size_t i = inner.size(); i-- > 0;) append_inner(inner[i], several, fused, steps);
  }

 private:
  // Those that gain clearly.
  [[nodiscard]] int64_t usual_rows() const {
    const int64_t vectors = (length + lanes - 1) / lanes;
    int64_t wanted = std::min<int64_t>(most_at_once(), functions ? 4 : 2);
    if (vectors > (functions ? kSomeVectors : kManyVectors)) wanted = 1;
    int64_t rows = 1;
    for (const int64_t extent : extents) rows *= extent;
    while (wanted > 1 && rows < kTilesPerCore * cores * wanted) wanted /= 2;
    return wanted;
  }
  // Blocks of columns of which the last one has fewer, and others do not.
  [[nodiscard]] bool has_rest(const Choice& choice) const {
    const int64_t block = choice[d_vectors] * lanes;
    return columns > block && columns % block != 0;
  }
  // Rows that run together are neighbours along the last axis that they divide, else along the
  // longest, whose last tile has fewer.
  [[nodiscard]] size_t axis_of(int64_t at_once) const {
    size_t best = 0;
    for (size_t a = 0; a < outer.size(); ++a) {
      if (extents[a] > extents[best]) best = a;
    }
    for (size_t a = 0; a < outer.size(); ++a) {
      if (extents[a] % at_once == 0) best = a;
    }
    return best;
  }

  void append_inner(const Inner& stage, const std::string& several, const std::string& fused,
                    Steps& steps) const {
    steps.push_back(schedule::ComputeAt{stage.stage, root, fused});
    // A vector or a few, which stay in registers.
    if (stage.keeps_one) steps.push_back(schedule::SetScope{stage.stage, ir::Scope::kStack});
    LoopNest loops = stage.loops;
    if (contains(stage.axes, several)) {
      std::erase(loops.outer, several);
      loops.unrolled = {several};
    }
    append_nest(stage.stage, loops, steps);
  }
};

// Whether it computes functions of elements along the rows.
bool has_functions(const StageInfo& info, const std::vector<std::string>& outer) {
  bool found = false;
  for (const compute::Output& output : info.stage.outputs) {
    ir::visit(output.value, [&](const ir::Expr& e) {
      if (e->op < ir::Op::kSqrt && e->op != ir::Op::kPow) return;
      for (const compute::Axis& axis : info.axes)
        found |= !contains(outer, axis.var->name) && ir::uses(e, axis.var.get());
    });
  }
  return found;
}

// Inlines pointwise stages that are cheap or have one reader only.
Status inline_cheap(SketchBuilder& builder) {
  return inline_stages(builder, [&](const compute::Stage& stage) {
    return !is_expensive(stage) || builder.state.readers(stage.outputs[0].buffer).size() <= 1;
  });
}

// Whether the stages are such a task at all.
bool applies(const State& state) {
  int reductions = 0;
  bool long_row = false;
  for (const schedule::StageState& stage : state.stages) {
    const StageInfo& info = *stage.info;
    if (info.stage.is_extern() || info.stage.where || info.constant ||
        info.stage.outputs.size() != 1)
      return false;
    const bool last = &stage == &state.stages.back();
    if (state.is_param(info.stage.outputs[0].buffer) != last) return false;
    if (!is_reduction(info)) continue;
    ++reductions;
    if (moving_operands(info) != 1) return false;
    const int axis = contiguous_reduce_axis(info);
    long_row |= axis >= 0 && info.axes[static_cast<size_t>(axis)].extent >= kShortRow;
  }
  const StageInfo& root = *state.stages.back().info;
  if (is_reduction(root) || root.stage.axes.empty()) return false;
  return reductions > 1 || (reductions == 1 && long_row);
}

int64_t points_of_reduction(const StageInfo& info) {
  int64_t points = 1;
  for (const compute::Axis& axis : info.stage.reduce) points *= axis.extent;
  return points;
}

// What the root's axes are: numbers of rows, places in a row, columns.
void find_axes(const State& state, Rows& group) {
  const StageInfo& root = *state.stages.back().info;
  const auto all_reductions = [&](const auto& holds) {
    return std::all_of(state.stages.begin(), state.stages.end(), [&](const auto& stage) {
      return !is_reduction(*stage.info) || holds(*stage.info);
    });
  };
  const bool scattered =
      all_reductions([](const StageInfo& info) { return contiguous_reduce_axis(info) < 0; });
  const int unit = unit_stride_axis(root);
  for (int a = 0; a < root.num_spatial(); ++a) {
    const compute::Axis& axis = root.axes[static_cast<size_t>(a)];
    const std::string& name = axis.var->name;
    const bool shared = all_reductions([&](const StageInfo& info) { return has_axis(info, name); });
    if (shared && a == unit && scattered) {
      group.column = name;
      group.columns = axis.extent;
    } else {
      (shared ? group.outer : group.row).push_back(name);
      if (shared) group.extents.push_back(axis.extent);
    }
  }
  if (unit < 0) return;  // else lanes run along contiguous elements of the result
  const std::string& name = root.axes[static_cast<size_t>(unit)].var->name;
  const auto at = std::find(group.row.begin(), group.row.end(), name);
  if (at != group.row.end()) std::rotate(at, at + 1, group.row.end());
}

// The axis that the lanes of a stage other than the root run along; "" if there is none.
std::string lane_axis(const StageInfo& info, const Rows& group) {
  if (!group.column.empty()) return group.column;
  const int contiguous = contiguous_reduce_axis(info);
  if (contiguous >= 0) return info.axes[static_cast<size_t>(contiguous)].var->name;
  std::string last;  // without a contiguous axis the last one that is no row number
  for (const compute::Axis& axis : info.axes) {
    if (!contains(group.outer, axis.var->name)) last = axis.var->name;
  }
  return last;
}

Rows::Inner inner_of(const StageInfo& info, const Rows& group) {
  Rows::Inner inner{info.stage.name, {}, names_of(info.stage.axes)};
  inner.keeps_one =
      !group.column.empty() && is_reduction(info) &&
      std::none_of(inner.axes.begin(), inner.axes.end(),
                   [&](const std::string& name) { return contains(group.row, name); });
  inner.loops.vector = lane_axis(info, group);
  if (inner.loops.vector.empty()) return inner;
  inner.loops.outer = names_of(info.axes);
  std::erase(inner.loops.outer, inner.loops.vector);
  return inner;
}

void add_decisions(SketchBuilder& builder, Rows& group) {
  if (!group.column.empty()) {
    // Where a column has one result only, larger blocks and tests of whole ones gain nothing.
    std::vector<int64_t> vectors = {1, 2, 4};
    if (!group.row.empty() && builder.cpu().vector_registers >= 32) vectors.push_back(8);
    group.d_vectors =
        builder.add_decision(group.root, "vectors", DecisionKind::kVector, std::move(vectors));
    if (!group.row.empty())
      group.d_tail = builder.add_decision(group.root, "column_tail", DecisionKind::kTail, {0, 1});
    return;
  }
  std::vector<int64_t> counts = {1};
  const int64_t most = *std::max_element(group.extents.begin(), group.extents.end());
  for (int64_t n = 2; n <= std::min(most, group.most_at_once()); n *= 2) counts.push_back(n);
  if (counts.size() > 1)
    group.d_rows = builder.add_decision(group.root, "rows_at_once", DecisionKind::kUnroll, counts);
}

}  // namespace

Fit add_rows(SketchBuilder& builder, const Task&) {
  if (!copy_out(builder).ok() || !inline_cheap(builder).ok() || !applies(builder.state))
    return Fit::kNone;
  const StageInfo& root = *builder.state.stages.back().info;
  auto group = std::make_shared<Rows>();
  group->root = root.stage.name;
  group->lanes = lanes_of(builder.cpu(), root);
  group->cores = builder.cpu().cores;
  group->result_bytes = root.stage.outputs[0].buffer->bytes();
  if (builder.cpu().caches.size() > 1) group->near_bytes = 2 * builder.cpu().caches[1].bytes;
  find_axes(builder.state, *group);
  if (group->outer.empty() && group->column.empty()) return Fit::kNone;
  for (const schedule::StageState& stage : builder.state.stages) {
    const StageInfo& info = *stage.info;
    group->length = std::max(group->length, points_of_reduction(info));
    group->reductions += is_reduction(info) ? 1 : 0;
    group->functions |= has_functions(info, group->outer);
    if (stage.name() != group->root) group->inner.push_back(inner_of(info, *group));
  }
  add_decisions(builder, *group);
  builder.groups.push_back(std::move(group));
  return Fit::kWhole;
}

}  // namespace hone::space
