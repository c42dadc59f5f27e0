#include "hone/space/contraction.h"

#include <algorithm>
#include <cmath>

namespace hone::space {

using schedule::Steps;

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

void Contraction::set_tile(std::vector<int>& choices, int64_t columns) const {
  const std::vector<int64_t> one = {1};
  double best = INFINITY;
  std::vector<int> chosen = choices;
  for (const int64_t vectors : own_decisions[d_vectors].options) {
    for (const int64_t column : d_column >= 0 ? own_decisions[d_column].options : one) {
      std::vector<int> trial = choices;
      trial[d_vectors] = nearest_option(own_decisions[d_vectors], vectors);
      if (d_column >= 0) trial[d_column] = nearest_option(own_decisions[d_column], column);
      if (column > columns || !legal(Choice(own_decisions, trial))) continue;
      const double cost =
          tile_cost(column, vectors, lanes, columns, axes[roles.vector].extent, reuses, 1);
      if (cost >= best) continue;
      best = cost;
      chosen = std::move(trial);
    }
  }
  choices = std::move(chosen);
}

std::string Contraction::rows_loop() const {
  std::string fused;
  for (const int axis : roles.outer) fused += axes[axis].var->name + "@";
  return fused + axes[roles.row].var->name + ".0";
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
  if (!nested) {
    const auto end = outer.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(depth, 1));
    const std::string fused = fuse_loops(epilogue, {outer.begin(), end}, steps);
    if (end == outer.end()) attach = fused;
    steps.push_back(schedule::Parallel{epilogue, fused});
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
  const int64_t blocks = value(choice, d_blocks);
  std::vector<std::string> dims = {fmt::format("{}/{}", rvec, blocks * vm * v)};
  if (blocks > 1) dims.push_back(fmt::format("{}/{}%{}", rvec, vm * v, blocks));
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
  steps.push_back(schedule::Layout{packed, dims});
}

}  // namespace hone::space
