// Sums along contiguous elements with the vector lanes along the sum: for results too few to fill
// lanes, and where lanes along a result would gather. E is the pointwise epilogue of the sum R.
//
//   blocks of E's rows and columns, in parallel or, where that takes longer, not:
//     R.rf: for reduce loops: for rows, columns and vectors (unrolled): lanes; in registers
//     R: the sum of the lanes
//     E: the tile of results: bias, activation, store
//
// A constant operand is packed at compile time in the order in which the loops read it.
#include <algorithm>
#include <cmath>

#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::Steps;
using schedule::Tail;

constexpr double kLeastShared = 20'000;  // vectors of products that are worth a second thread

class Dot : public Group {
 public:
  std::string epilogue, reduction, packed;   // stage names; packed = "" if no operand is packed
  std::vector<compute::Axis> axes;           // of E
  std::vector<std::string> reduction_names;  // R's name of each of E's axes
  std::vector<compute::Axis> taps;           // R's other reduce axes
  std::string sum;                           // the reduce axis that the lanes run along
  int64_t length = 1;                        // its extent
  std::vector<std::string> packed_axes;      // of the packed operand
  int column = -1, row = -1;                 // E's axes that are tiled, the column innermost
  bool pad_column = false;                   // only the packed operand moves with the column
  int registers = 16;
  int64_t lanes = 8;
  DecisionId d_lanes, d_vectors, d_column, d_row, d_order, d_parallel;

  [[nodiscard]] bool legal(const Choice& choice) const override {
    const int64_t columns = choice[d_column], rows = choice[d_row], vectors = choice[d_vectors];
    if (vectors > 1 && vectors * choice[d_lanes] > length) return false;
    if (peels(choice) && others(column).empty()) return false;
    return columns * rows * vectors + std::min(columns, rows) + 1 <= registers;
  }
  void set_default(MutableChoice& choice) const override;
  // Two loops of tiles, one of which runs once or stays innermost, have no order.
  void canonicalise(MutableChoice& choice) const override {
    if (!d_order.is_open()) return;
    if (peels(choice) || choice[d_row] >= axes[row].extent ||
        choice[d_column] >= axes[column].extent)
      choice.set_index(d_order, 0);
  }
  void append_steps(const Choice& choice, Steps& steps) const override;

 private:
  // A last tile of columns of its own; tiles of rows always divide them.
  [[nodiscard]] bool peels(const Choice& choice) const {
    return column >= 0 && !pad_column && axes[column].extent % choice[d_column] != 0;
  }
  // The axes with points, except for one.
  [[nodiscard]] std::vector<int> others(int but) const {
    std::vector<int> found;
    for (int a = 0; a < static_cast<int>(axes.size()); ++a) {
      if (a != but && axes[a].extent > 1) found.push_back(a);
    }
    return found;
  }
  // Cycles of all tiles of so many vectors, rows and columns, for each row.
  [[nodiscard]] double tile_cycles(int64_t vectors, int64_t rows, int64_t columns) const;
  // E's loops; returns the one that holds the rest.
  std::string append_epilogue(const Choice& choice, Steps& steps) const;
  void append_layout(const Choice& choice, Steps& steps) const;
};

void Dot::set_default(MutableChoice& choice) const {
  choice.set(d_lanes, lanes);
  choice.set(d_order, 0);
  double products = static_cast<double>(length);
  for (const compute::Axis& axis : axes) products *= static_cast<double>(axis.extent);
  for (const compute::Axis& tap : taps) products *= static_cast<double>(tap.extent);
  choice.set(d_parallel, products > kLeastShared * static_cast<double>(lanes) ? 1 : 0);
  double best = INFINITY;
  std::vector<int> chosen = choice.indices();
  for (const int64_t vectors : choice.options(d_vectors)) {
    for (const int64_t rows : choice.options(d_row)) {
      for (const int64_t columns : choice.options(d_column)) {
        choice.set(d_vectors, vectors), choice.set(d_row, rows), choice.set(d_column, columns);
        if (!legal(choice)) continue;
        const double cost = tile_cycles(vectors, rows, columns);
        if (cost >= best) continue;
        best = cost;
        chosen = choice.indices();
      }
    }
  }
  choice.indices() = std::move(chosen);
}

double Dot::tile_cycles(int64_t vectors, int64_t rows, int64_t columns) const {
  const double results = static_cast<double>(rows * columns);
  const double fma = results * static_cast<double>(vectors);
  const double loads = static_cast<double>((rows + columns) * vectors);
  // The latency of a dependent multiply-add bounds small tiles; lanes are summed at the end.
  const double steps =
      std::ceil(static_cast<double>(length) / static_cast<double>(vectors * lanes));
  const double cycles =
      steps * (std::max({fma / 2, loads / 2, 4.0}) + 0.1 * loads + 1) + 8 * results;
  const double tiles =
      column < 0
          ? 1
          : std::ceil(static_cast<double>(axes[column].extent) / static_cast<double>(columns));
  return cycles * tiles / static_cast<double>(rows);
}

std::string Dot::append_epilogue(const Choice& choice, Steps& steps) const {
  const bool peel = peels(choice);
  std::vector<std::string> outer, inner, tiled;
  for (int a = 0; a < static_cast<int>(axes.size()); ++a) {
    if (a != column && a != row) outer.push_back(axes[a].var->name);
  }
  if (row >= 0) {
    const std::string name = axes[row].var->name;
    steps.emplace_back(schedule::Split{epilogue, name, {choice[d_row]}, Tail::kMask});
    tiled.push_back(name + ".0");
    inner.push_back(name + ".1");
  }
  if (column >= 0) {
    const std::string name = axes[column].var->name;
    const Tail tail = pad_column ? Tail::kPad : peel ? Tail::kPeel : Tail::kMask;
    steps.emplace_back(schedule::Split{epilogue, name, {choice[d_column]}, tail});
    tiled.push_back(name + ".0");
    inner.push_back(name + ".1");
  }
  // A loop that is peeled stays by itself, and innermost.
  if (choice.or_zero(d_order) == 1 && !peel) std::reverse(tiled.begin(), tiled.end());
  outer.insert(outer.end(), tiled.begin(), tiled.end());
  std::vector<std::string> order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  steps.emplace_back(schedule::Reorder{epilogue, std::move(order)});
  std::string holder = outer.back();
  if (peel) outer.pop_back();
  const std::string fused = fuse_loops(epilogue, outer, steps);
  if (choice[d_parallel] == 1) steps.emplace_back(schedule::Parallel{epilogue, fused});
  if (inner.size() > 1) steps.emplace_back(schedule::Unroll{epilogue, inner[0]});
  if (!inner.empty()) steps.emplace_back(schedule::Vectorize{epilogue, inner.back()});
  return peel ? holder : fused;
}

void Dot::append_steps(const Choice& choice, Steps& steps) const {
  const int64_t v = choice[d_lanes], vectors = choice[d_vectors];
  const std::string lane = sum + "i", part = reduction + ".rf";
  steps.emplace_back(schedule::RFactor{reduction, sum, v * vectors, schedule::Parts::kStrided});
  const std::string holder = append_epilogue(choice, steps);

  steps.emplace_back(schedule::ComputeAt{reduction, epilogue, holder});
  steps.emplace_back(schedule::SetScope{reduction, ir::Scope::kRegister});
  append_nest(reduction, {.outer = {}, .unrolled = reduction_names, .vector = lane}, steps);

  steps.emplace_back(schedule::ComputeAt{part, epilogue, holder});
  steps.emplace_back(schedule::SetScope{part, ir::Scope::kRegister});
  std::vector<std::string> dims;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].extent > 1) dims.push_back(reduction_names[a]);
  }
  dims.push_back(lane);
  steps.emplace_back(schedule::Layout{part, std::move(dims)});
  steps.emplace_back(schedule::Split{part, lane, {v}, Tail::kMask});
  steps.emplace_back(schedule::Split{part, sum, {1}, Tail::kPeel});
  LoopNest loops{.outer = names_of(taps), .unrolled = reduction_names, .vector = lane + ".1"};
  loops.outer.push_back(sum + ".0");
  loops.unrolled.insert(loops.unrolled.begin(), {sum + ".1", lane + ".0"});
  append_nest(part, loops, steps);
  if (!packed.empty()) append_layout(choice, steps);
}

void Dot::append_layout(const Choice& choice, Steps& steps) const {
  const int64_t factor = choice[d_lanes] * choice[d_vectors], columns = choice[d_column];
  const std::string tiled = column >= 0 ? reduction_names[column] : "";
  const auto is_tap = [&](const std::string& name) {
    return std::any_of(taps.begin(), taps.end(),
                       [&](const compute::Axis& tap) { return tap.var->name == name; });
  };
  bool has_column = false;
  std::vector<std::string> dims;
  for (const std::string& name : packed_axes) {
    if (name == tiled) has_column = true;
    if (name != tiled && name != sum && !is_tap(name)) dims.push_back(name);
  }
  if (has_column) dims.push_back(quotient(tiled, columns));
  for (const compute::Axis& tap : taps) {
    if (std::count(packed_axes.begin(), packed_axes.end(), tap.var->name) > 0)
      dims.push_back(tap.var->name);
  }
  dims.push_back(quotient(sum, factor));
  if (has_column) dims.push_back(remainder(tiled, columns));
  dims.push_back(remainder(sum, factor));
  steps.emplace_back(schedule::Layout{packed, std::move(dims)});
}

// The longest reduce axis (position in r.axes) along which all operands are contiguous or packed;
// -1 if there is none.
int lane_axis(const schedule::State& state, const schedule::StageInfo& r) {
  int best = -1;
  for (size_t a = static_cast<size_t>(r.num_spatial()); a < r.axes.size(); ++a) {
    const compute::Access* operand = packable(state, r, static_cast<int>(a));
    const bool fits = std::all_of(r.reads.begin(), r.reads.end(), [&](const auto& read) {
      if (operand != nullptr && read.buffer == operand->buffer) return true;
      return read.buffer == r.stage.outputs[0].buffer || is_contiguous(read, a);
    });
    if (fits && (best < 0 || r.axes[a].extent > r.axes[static_cast<size_t>(best)].extent))
      best = static_cast<int>(a);
  }
  return best;
}

std::vector<int64_t> divisors(int64_t extent, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t n = 1; n <= std::min(extent, most); ++n) {
    if (extent % n == 0) found.push_back(n);
  }
  return found;
}

// Chooses the axes that are tiled: the innermost with points, and the next one. Returns the number
// of results.
int64_t choose_tile(const schedule::StageInfo& e, int unit, Dot& group) {
  group.column = unit;
  int64_t results = 1;
  for (int a = e.num_spatial(); a-- > 0;) {
    const int64_t extent = e.axes[static_cast<size_t>(a)].extent;
    results *= extent;
    if (a == unit || extent == 1) continue;
    if (group.column < 0) {
      group.column = a;
    } else if (group.row < 0) {
      group.row = a;
    }
  }
  return results;
}

void add_decisions(SketchBuilder& builder, Dot& group) {
  const std::string& stage = group.epilogue;
  std::vector<int64_t> lanes = {group.lanes};
  if (group.lanes >= 8) lanes.insert(lanes.begin(), group.lanes / 2);
  group.d_lanes = builder.add_decision(stage, "dot_lanes", DecisionKind::kVector, lanes);
  group.d_vectors = builder.add_decision(stage, "dot_vectors", DecisionKind::kTile, {1, 2, 4, 8});
  constexpr int64_t kMost = 8;  // rows or columns of a tile
  if (group.row >= 0) {
    const int64_t rows = group.axes[group.row].extent;
    group.d_row =
        builder.add_decision(stage, "dot_row", DecisionKind::kTile, divisors(rows, kMost), rows);
  }
  if (group.column >= 0) {
    const int64_t columns = group.axes[group.column].extent;
    group.d_column = builder.add_decision(stage, "dot_column", DecisionKind::kTile,
                                          tile_options(columns, kMost), columns);
  }
  if (group.row >= 0 && group.column >= 0)
    group.d_order = builder.add_decision(stage, "dot_order", DecisionKind::kOrder, {0, 1});
  group.d_parallel = builder.add_decision(stage, "dot_parallel", DecisionKind::kParallel, {0, 1});
}

}  // namespace

Fit add_dot(SketchBuilder& builder, const Task& task) {
  const std::string &epilogue = task.epilogue, &reduction = task.reduction;
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(reduction);
  if (e->constant || e->stage.where || r->stage.where || e->stage.outputs.size() != 1 ||
      e->axes.empty() || !r->stage.outputs[0].merge)
    return Fit::kNone;
  const auto names = match_axes(*e, *r);
  const int sum = lane_axis(builder.state, *r);
  if (!names || sum < 0) return Fit::kNone;
  auto group = std::make_shared<Dot>();
  group->lanes = lanes_of(builder.cpu(), *e);
  group->length = r->axes[static_cast<size_t>(sum)].extent;
  if (group->lanes < 2 || group->length < group->lanes) return Fit::kNone;
  group->axes = e->stage.axes;
  group->reduction_names = *names;
  const int unit = unit_stride_axis(*e);
  const int64_t results = choose_tile(*e, unit, *group);
  size_t r_column = 0;
  for (size_t a = 0; group->column >= 0 && a < r->axes.size(); ++a) {
    if (r->axes[a].var->name == group->reduction_names[static_cast<size_t>(group->column)])
      r_column = a;
  }
  const compute::Access* operand = packable(builder.state, *r, sum);
  bool gathers = false;
  int moving = 0;
  for (const compute::Access& read : r->reads) {
    if (group->column < 0 || !moves(read, static_cast<int>(r_column))) continue;
    ++moving;
    const bool is_packed = operand != nullptr && read.buffer == operand->buffer;
    gathers = gathers || !(is_packed || is_contiguous(read, r_column));
  }
  const int64_t vector = unit < 0 ? 1 : e->axes[static_cast<size_t>(unit)].extent;
  const bool is_short = 4 * vector <= group->lanes;
  if (vector >= 2 * group->lanes && !gathers && results > 8 * group->lanes) return Fit::kNone;

  group->epilogue = epilogue;
  group->reduction = reduction;
  group->sum = r->axes[static_cast<size_t>(sum)].var->name;
  group->registers = builder.cpu().vector_registers;
  for (const compute::Axis& axis : r->stage.reduce) {
    if (axis.var->name != group->sum) group->taps.push_back(axis);
  }
  if (operand != nullptr) {
    group->pad_column = moving == 1 && moves(*operand, static_cast<int>(r_column));
    group->packed = add_copy(builder, operand->buffer->name, reduction);
    if (group->packed.empty()) return Fit::kNone;
    group->packed_axes = long_axes(builder, group->packed);
  }
  add_decisions(builder, *group);
  builder.groups.push_back(std::move(group));
  return unit < 0 || gathers || is_short ? Fit::kBest : Fit::kPossible;
}

}  // namespace hone::space
