// Multi-level tiling around a register tile (the CPU rule of Ansor, section 4.1, with explicit
// registers): a reduction R is computed inside its pointwise epilogue E.
//
//   parallel outer loops of E, in a chosen order
//     R: for reduce loops: for the register tile (unrolled) x vector lanes
//     E: the register tile: bias, activation, residual, store
//
// A constant operand of R is packed at compile time in the order in which the loops read it.
#include <algorithm>
#include <cmath>

#include "hone/space/sketch.h"

namespace hone::space {
namespace {

using schedule::Steps;

// The axes of E by what the rule does with them.
struct Roles {
  int vector = -1;         // along the vector lanes
  int column = -1;         // innermost other axis: register tile
  int row = -1;            // the one before: small register tile and a cache block
  std::vector<int> outer;  // the rest
};

class Contraction : public Group {
 public:
  std::string epilogue, reduction, packed;   // stage names; packed = "" if no operand is packed
  std::vector<compute::Axis> axes;           // of E
  std::vector<std::string> reduction_names;  // R's name of each of E's axes
  std::vector<compute::Axis> reduce;         // R's reduce axes, innermost by rule last
  std::vector<std::string> packed_axes;      // axes of the packed operand
  Roles roles;
  bool reuses = false;  // some operand does not move with the vector lanes
  int registers = 16;
  int lanes = 8;
  int cores = 1;
  bool pad_vector = false;  // only the packed operand moves with the lanes
  // decisions; -1 if there is nothing to decide
  int d_lanes = -1, d_vectors = -1, d_column = -1, d_row = -1, d_block = -1;
  int d_order = -1, d_parallel = -1, d_unroll = -1, d_taps = -1, d_reduce_order = -1, d_tail = -1;

  [[nodiscard]] bool legal(const Choice& choice) const override {
    const int64_t tile = value(choice, d_column) * value(choice, d_row);
    const int64_t vectors = value(choice, d_vectors);
    const int64_t accumulators = tile * vectors;
    // Operands that wait in registers: the vectors of the packed operand and, if the instruction
    // cannot read a broadcast from memory, one broadcast.
    const int64_t operands = reuses ? vectors + 1 : 2;
    if (accumulators + operands > registers) return false;
    if (choice[d_vectors] > 1 &&
        (choice[d_vectors] - 1) * choice[d_lanes] >= axes[roles.vector].extent)
      return false;
    const int64_t body =
        accumulators * value(choice, d_unroll) * (taps_unrolled(choice) ? taps() : 1);
    return body <= 768;  // instructions; beyond, compile time and the instruction cache suffer
  }

  void set_default(std::vector<int>& choices) const override;
  void append_steps(const Choice& choice, Steps& steps) const override;

  [[nodiscard]] static int64_t value(const Choice& choice, int decision) {
    return decision < 0 ? 1 : choice[decision];
  }
  [[nodiscard]] bool taps_unrolled(const Choice& choice) const {
    return d_taps >= 0 && choice[d_taps] != 0;
  }
  // Points of the small reduce axes (a kernel's window).
  [[nodiscard]] int64_t taps() const {
    int64_t product = 1;
    for (size_t i = 0; i + 1 < reduce.size(); ++i) product *= reduce[i].extent;
    return product;
  }
  std::vector<Decision> own_decisions;  // a copy of the options, for the rule of thumb
};

// Instructions per useful multiply-add of a register tile, tails counted: lower is better.
double tile_cost(int64_t column, int64_t vectors, int64_t lanes, int64_t columns, int64_t channels,
                 bool reuses, int64_t rows) {
  const double fma = static_cast<double>(column * vectors * rows);
  const double loads = reuses ? static_cast<double>(column * rows + vectors) : 2 * fma;
  // Latency of a dependent multiply-add bounds small tiles; loads cost a little even when hidden.
  const double cycles = std::max({fma / 2, loads / 2, 4.0}) + 0.1 * loads;
  const double tiles =
      std::ceil(static_cast<double>(columns) / static_cast<double>(column)) *
      std::ceil(static_cast<double>(channels) / static_cast<double>(vectors * lanes));
  // A peeled tail tile costs its own, smaller, time; count it in part.
  const double tail = columns % column == 0 ? 0 : 0.25;
  return cycles * (tiles + tail) / static_cast<double>(rows);
}

void Contraction::set_default(std::vector<int>& choices) const {
  const auto set = [&](int decision, int64_t wanted) {
    if (decision >= 0) choices[decision] = nearest_option(own_decisions[decision], wanted);
  };
  const int64_t channels = axes[roles.vector].extent;
  set(d_lanes, lanes);
  set(d_row, 1);
  const int64_t columns = roles.column >= 0 ? axes[roles.column].extent : 1;
  double best = INFINITY;
  for (const int64_t vectors : own_decisions[d_vectors].options) {
    const std::vector<int64_t> one = {1};
    for (const int64_t column : d_column >= 0 ? own_decisions[d_column].options : one) {
      if (column * vectors + (reuses ? vectors + 1 : 2) > registers) continue;
      if (vectors > 1 && (vectors - 1) * lanes >= channels) continue;
      const double cost = tile_cost(column, vectors, lanes, columns, channels, reuses, 1);
      if (cost >= best) continue;
      best = cost;
      set(d_vectors, vectors);
      set(d_column, column);
    }
  }
  set(d_unroll, reuses ? 4 : 1);
  set(d_taps, taps() <= 9 && !reuses ? 1 : 0);
  set(d_reduce_order, 0);
  set(d_tail, 1);
  set(d_order, 0);
  const int64_t rows = roles.row >= 0 ? axes[roles.row].extent : 1;
  set(d_block, std::max<int64_t>(1, rows / (4 * cores)));
  set(d_parallel, 2);
  const Choice choice(own_decisions, choices);
  if (!legal(choice)) set(d_unroll, 1);
  if (!legal(choice)) set(d_taps, 0);
}

void Contraction::append_steps(const Choice& choice, Steps& steps) const {
  const auto name = [&](int axis) { return axes[axis].var->name; };
  const int64_t v = choice[d_lanes], vm = value(choice, d_vectors);
  const std::string vec = name(roles.vector);
  steps.push_back(schedule::Split{
      epilogue, vec, {vm, v}, pad_vector ? schedule::Tail::kPad : schedule::Tail::kMask});
  std::vector<std::string> inner;
  std::vector<std::string> rows, columns;
  if (roles.row >= 0) {
    steps.push_back(schedule::Split{epilogue,
                                    name(roles.row),
                                    {value(choice, d_block), value(choice, d_row)},
                                    schedule::Tail::kMask});
    for (const char* part : {".0", ".1"}) rows.push_back(name(roles.row) + part);
    inner.push_back(name(roles.row) + ".2");
  }
  if (roles.column >= 0) {
    const schedule::Tail tail =
        value(choice, d_tail) == 1 ? schedule::Tail::kPeel : schedule::Tail::kMask;
    steps.push_back(schedule::Split{epilogue, name(roles.column), {value(choice, d_column)}, tail});
    columns.push_back(name(roles.column) + ".0");
    inner.push_back(name(roles.column) + ".1");
  }
  inner.push_back(vec + ".1");
  inner.push_back(vec + ".2");

  // Outer loops: which operand stays while the other moves.
  std::vector<std::string> outer;
  for (const int axis : roles.outer) outer.push_back(name(axis));
  const size_t fixed = outer.size();
  const std::string channel = vec + ".0";
  const auto append = [&](const std::vector<std::string>& names) {
    outer.insert(outer.end(), names.begin(), names.end());
  };
  switch (value(choice, d_order)) {
    case 0:  // a block of rows keeps a block of weights
      if (!rows.empty()) outer.push_back(rows[0]);
      outer.push_back(channel);
      if (!rows.empty()) outer.push_back(rows[1]);
      append(columns);
      break;
    case 1:  // weights outermost
      outer.push_back(channel);
      append(rows);
      append(columns);
      break;
    default:  // data outermost
      append(rows);
      append(columns);
      outer.push_back(channel);
      break;
  }
  std::vector<std::string> order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  steps.push_back(schedule::Reorder{epilogue, order});
  const size_t depth =
      std::min(outer.size(), fixed + static_cast<size_t>(value(choice, d_parallel)));
  std::string attach = outer.back();
  if (depth > 1) {
    schedule::Fuse fuse{epilogue,
                        {outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(depth)}};
    std::string fused = fuse.loops[0];
    for (size_t i = 1; i < fuse.loops.size(); ++i) fused += "@" + fuse.loops[i];
    if (depth == outer.size()) attach = fused;
    steps.push_back(std::move(fuse));
    steps.push_back(schedule::Parallel{epilogue, fused});
  } else {
    steps.push_back(schedule::Parallel{epilogue, outer[0]});
  }
  for (size_t i = 0; i + 1 < inner.size(); ++i)
    steps.push_back(schedule::Unroll{epilogue, inner[i]});
  steps.push_back(schedule::Vectorize{epilogue, inner.back()});

  // The reduction.
  steps.push_back(schedule::ComputeAt{reduction, epilogue, attach});
  steps.push_back(schedule::SetScope{reduction, ir::Scope::kRegister});
  const std::string rvec = reduction_names[roles.vector];
  steps.push_back(schedule::Split{reduction, rvec, {v}, schedule::Tail::kMask});
  const int64_t unroll = value(choice, d_unroll);
  const std::string last = reduce.back().var->name;
  const bool split_last = unroll > 1;
  if (split_last)
    steps.push_back(schedule::Split{reduction, last, {unroll}, schedule::Tail::kPeel});
  std::vector<std::string> loops;
  const bool last_first = value(choice, d_reduce_order) == 1 && reduce.size() > 1;
  const std::string last_outer = split_last ? last + ".0" : last;
  if (last_first) loops.push_back(last_outer);
  for (size_t i = 0; i + 1 < reduce.size(); ++i) loops.push_back(reduce[i].var->name);
  if (!last_first) loops.push_back(last_outer);
  if (split_last) loops.push_back(last + ".1");
  const size_t reduce_loops = loops.size();
  for (size_t a = 0; a < axes.size(); ++a) {
    if (static_cast<int>(a) != roles.vector) loops.push_back(reduction_names[a]);
  }
  loops.push_back(rvec + ".0");
  loops.push_back(rvec + ".1");
  steps.push_back(schedule::Reorder{reduction, loops});
  if (split_last) steps.push_back(schedule::Unroll{reduction, last + ".1"});
  if (taps_unrolled(choice)) {
    for (size_t i = 0; i + 1 < reduce.size(); ++i)
      steps.push_back(schedule::Unroll{reduction, reduce[i].var->name});
  }
  for (size_t i = reduce_loops; i + 1 < loops.size(); ++i)
    steps.push_back(schedule::Unroll{reduction, loops[i]});
  steps.push_back(schedule::Vectorize{reduction, loops.back()});

  if (packed.empty()) return;
  const auto has = [&](const std::string& axis) {
    return std::count(packed_axes.begin(), packed_axes.end(), axis) > 0;
  };
  std::vector<std::string> dims = {fmt::format("{}/{}", rvec, vm * v)};
  for (const std::string& axis : packed_axes) {
    bool reduces = axis == rvec;
    for (const compute::Axis& r : reduce) reduces |= r.var->name == axis;
    if (!reduces) dims.push_back(axis);
  }
  const auto add_last = [&](bool first_part) {
    if (!has(last)) return;
    if (!split_last) {
      if (first_part) dims.push_back(last);
      return;
    }
    dims.push_back(first_part ? fmt::format("{}/{}", last, unroll)
                              : fmt::format("{}%{}", last, unroll));
  };
  if (last_first) add_last(true);
  for (size_t i = 0; i + 1 < reduce.size(); ++i) {
    if (has(reduce[i].var->name)) dims.push_back(reduce[i].var->name);
  }
  if (!last_first) add_last(true);
  add_last(false);
  if (vm > 1) dims.push_back(fmt::format("{}/{}%{}", rvec, v, vm));
  dims.push_back(fmt::format("{}%{}", rvec, v));
  if (vm == 1) dims[0] = fmt::format("{}/{}", rvec, v);
  steps.push_back(schedule::Layout{packed, dims});
}

// E's axis for each of R's spatial axes; nothing unless they correspond one to one.
std::optional<std::vector<std::string>> match_axes(const schedule::StageInfo& e,
                                                   const schedule::StageInfo& r) {
  const compute::Access* access = nullptr;
  for (const compute::Access& read : e.reads) {
    if (read.buffer != r.stage.outputs[0].buffer) continue;
    if (access) return std::nullopt;  // one read, maybe chosen by a select: it is inside anyway
    access = &read;
  }
  if (!access) return std::nullopt;
  std::vector<std::string> names(e.axes.size());
  for (size_t d = 0; d < access->index.size(); ++d) {
    int from = -1, to = -1;
    for (size_t a = 0; a < e.axes.size(); ++a) {
      if (access->index[d].coef[a] == 0) continue;
      if (access->index[d].coef[a] != 1 || from >= 0) return std::nullopt;
      from = static_cast<int>(a);
    }
    for (size_t a = 0; a < r.axes.size(); ++a) {
      if (r.writes[0][d].coef[a] == 0) continue;
      if (r.writes[0][d].coef[a] != 1 || to >= 0) return std::nullopt;
      to = static_cast<int>(a);
    }
    if (from < 0 && to < 0) continue;
    if (from < 0 || to < 0 || access->index[d].constant != r.writes[0][d].constant)
      return std::nullopt;
    if (e.axes[from].extent != r.axes[to].extent) return std::nullopt;
    names[from] = r.axes[to].var->name;
  }
  for (const std::string& name : names) {
    if (name.empty()) return std::nullopt;
  }
  return names.size() == static_cast<size_t>(r.num_spatial()) ? std::optional(names) : std::nullopt;
}

// The largest constant operand of R that moves with the vector lanes and whose dimensions are
// single axes: worth packing.
const compute::Access* packable(const schedule::State& state, const schedule::StageInfo& r,
                                int vector_axis) {
  const compute::Access* best = nullptr;
  for (const compute::Access& read : r.reads) {
    const ir::Param* param = state.find_param(read.buffer);
    if (!param || param->role != ir::Role::kConstant || read.guarded ||
        !read.buffer->values.empty())
      continue;
    bool simple = true, moves = false;
    std::vector<int> seen;
    for (size_t d = 0; d < read.index.size(); ++d) {
      int terms = 0;
      for (size_t a = 0; a < read.index[d].coef.size(); ++a) {
        if (read.index[d].coef[a] == 0) continue;
        ++terms;
        simple = simple && read.index[d].coef[a] == 1 &&
                 std::count(seen.begin(), seen.end(), static_cast<int>(a)) == 0;
        seen.push_back(static_cast<int>(a));
        moves = moves || static_cast<int>(a) == vector_axis;
      }
      simple = simple && terms <= 1 && read.index[d].constant == 0 &&
               (terms == 1 || read.buffer->shape[d] == 1);
      for (size_t a = 0; a < read.index[d].coef.size(); ++a) {
        if (read.index[d].coef[a] != 0)
          simple = simple && r.axes[a].extent == read.buffer->shape[d];
      }
    }
    if (simple && moves && (!best || read.buffer->num_elements() > best->buffer->num_elements()))
      best = &read;
  }
  return best;
}

void add_tile_decisions(SketchBuilder& builder, Contraction& group) {
  const std::string prefix = group.epilogue + ".";
  const int64_t channels = group.axes[group.roles.vector].extent;
  std::vector<int64_t> lane_options = {group.lanes};
  if (group.lanes >= 8) lane_options.insert(lane_options.begin(), group.lanes / 2);
  group.d_lanes = builder.add_decision(prefix + "lanes", DecisionKind::kVector, lane_options);
  const int64_t most = std::max<int64_t>(1, (channels + group.lanes / 2 - 1) / (group.lanes / 2));
  std::vector<int64_t> vectors;
  for (const int64_t n : {1, 2, 3, 4, 6, 8}) {
    if (n <= most) vectors.push_back(n);
  }
  group.d_vectors = builder.add_decision(prefix + "vectors", DecisionKind::kTile, vectors);
  if (group.roles.column >= 0) {
    group.d_column = builder.add_decision(
        prefix + "column", DecisionKind::kTile,
        tile_options(group.axes[group.roles.column].extent, group.registers - 2));
    group.d_tail = builder.add_decision(prefix + "tail", DecisionKind::kTail, {0, 1});
  }
  if (group.roles.row >= 0) {
    const int64_t rows = group.axes[group.roles.row].extent;
    group.d_row = builder.add_decision(prefix + "row", DecisionKind::kTile, tile_options(rows, 7));
    std::vector<int64_t> blocks;
    for (const int64_t n : {1, 2, 3, 4, 7, 8, 14, 16, 28, 32, 56, 112}) {
      if (n <= rows) blocks.push_back(n);
    }
    group.d_block = builder.add_decision(prefix + "block", DecisionKind::kTile, blocks);
  }
}

void add_loop_decisions(SketchBuilder& builder, Contraction& group) {
  const std::string prefix = group.epilogue + ".";
  group.d_order = builder.add_decision(prefix + "order", DecisionKind::kOrder, {0, 1, 2});
  group.d_parallel =
      builder.add_decision(prefix + "parallel", DecisionKind::kParallel, {1, 2, 3, 4});
  const int64_t last = group.reduce.back().extent;
  std::vector<int64_t> unrolls;
  for (const int64_t n : {1, 2, 4, 8}) {
    if (n <= last) unrolls.push_back(n);
  }
  group.d_unroll = builder.add_decision(prefix + "unroll", DecisionKind::kUnroll, unrolls);
  if (group.taps() > 1) {
    // Unrolled taps share loads of a register tile's operands, which then outnumber the registers;
    // where every lane has its own data, or few channels, sharing is the point.
    if (!group.reuses || last < 16)
      group.d_taps = builder.add_decision(prefix + "taps", DecisionKind::kUnroll, {0, 1});
    group.d_reduce_order =
        builder.add_decision(prefix + "reduce_order", DecisionKind::kOrder, {0, 1});
  }
}

}  // namespace

bool add_contraction(SketchBuilder& builder, const std::string& epilogue,
                     const std::string& reduction) {
  const schedule::StageInfoPtr e = builder.state.stages[builder.state.find_stage(epilogue)].info;
  const schedule::StageInfoPtr r = builder.state.stages[builder.state.find_stage(reduction)].info;
  if (e->constant || e->stage.where || r->stage.where || e->stage.outputs.size() != 1) return false;
  const auto names = match_axes(*e, *r);
  const int vector = unit_stride_axis(*e);
  if (!names || vector < 0) return false;

  auto group = std::make_shared<Contraction>();
  group->epilogue = epilogue;
  group->reduction = reduction;
  group->axes = e->stage.axes;
  group->reduction_names = *names;
  group->roles.vector = vector;
  std::vector<int> others;
  for (int a = 0; a < e->num_spatial(); ++a) {
    if (a != vector) others.push_back(a);
  }
  // The last two axes with points are tiled; the rest stays outside.
  for (size_t i = others.size(); i-- > 0;) {
    if (e->axes[others[i]].extent == 1 && (group->roles.column < 0 || group->roles.row < 0))
      continue;
    if (group->roles.column < 0) {
      group->roles.column = others[i];
    } else if (group->roles.row < 0) {
      group->roles.row = others[i];
    }
  }
  for (const int a : others) {
    if (a != group->roles.column && a != group->roles.row) group->roles.outer.push_back(a);
  }
  // Longest reduce axis innermost (channels); a window's taps outside of it.
  group->reduce = r->stage.reduce;
  std::stable_sort(group->reduce.begin(), group->reduce.end(),
                   [](const auto& a, const auto& b) { return a.extent < b.extent; });
  if (group->reduce.size() > 1 && group->reduce.back().extent < 3 * group->reduce[0].extent &&
      r->stage.reduce[0].extent > 1) {
    // No long axis: keep the order in which the Dag names them, the last innermost.
    group->reduce = r->stage.reduce;
  }
  int r_vector = -1;
  for (size_t a = 0; a < r->axes.size(); ++a) {
    if (r->axes[a].var->name == group->reduction_names[vector]) r_vector = static_cast<int>(a);
  }
  for (const compute::Access& read : r->reads) {
    const bool still =
        std::all_of(read.index.begin(), read.index.end(),
                    [&](const compute::AffineRow& row) { return row.coef[r_vector] == 0; });
    group->reuses = group->reuses || still;
  }
  group->lanes =
      builder.target.lanes(static_cast<int>(dtype_bytes(e->stage.outputs[0].buffer->dtype)));
  group->registers = builder.target.vector_registers;
  group->cores = builder.target.cores;
  int moving = 0;
  for (const compute::Access& read : r->reads) {
    moving += static_cast<int>(
        std::any_of(read.index.begin(), read.index.end(),
                    [&](const compute::AffineRow& row) { return row.coef[r_vector] != 0; }));
  }
  if (const compute::Access* operand = packable(builder.state, *r, r_vector)) {
    const std::string buffer = operand->buffer->name;
    const std::vector<std::string> before = [&] {
      std::vector<std::string> all;
      for (const auto& stage : builder.state.stages) all.push_back(stage.name());
      return all;
    }();
    if (builder.add_step(schedule::CacheRead{buffer, reduction}).ok()) {
      group->pad_vector = moving == 1;
      for (const auto& stage : builder.state.stages) {
        if (std::count(before.begin(), before.end(), stage.name()) == 0)
          group->packed = stage.name();
      }
      const schedule::StageState& cache =
          builder.state.stages[builder.state.find_stage(group->packed)];
      for (const compute::Axis& axis : cache.info->axes) {
        if (axis.extent > 1) group->packed_axes.push_back(axis.var->name);
      }
    }
  }
  add_tile_decisions(builder, *group);
  add_loop_decisions(builder, *group);
  group->own_decisions = builder.decisions;
  builder.groups.push_back(std::move(group));
  return true;
}

}  // namespace hone::space
