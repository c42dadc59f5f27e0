#include "hone/space/contraction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/round_up.h"

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

double Contraction::line_cycles(int64_t column, int64_t vectors) const {
  constexpr double kOfLine = 2;
  if (line == 0) return 0;
  const Extents all = whole();
  const int64_t points = vectors * lanes;
  const double lines = static_cast<double>(all.channels) / static_cast<double>(line);
  const double torn = 1.5 * static_cast<double>(line) - static_cast<double>(std::gcd(points, line));
  const double more = points >= all.channels ? 0 : torn / static_cast<double>(points);
  return kOfLine * lines * (1 + more) * static_cast<double>(ceil_div(all.columns, column));
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
      if (column * vectors + operand_registers(column, vectors) > registers) continue;
      if (vectors > 1 && (vectors - 1) * lanes >= channels) continue;
      const double cost = tile_cost(column, vectors, lanes, columns, channels, reuses, 1) +
                          line_cycles(column, vectors);
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
  set(d_rest, 0);
  set(d_order, 0);
  const int64_t rows = roles.row >= 0 ? axes[roles.row].extent : 1;
  set(d_block, std::max<int64_t>(1, rows / (4 * cores)));
  set(d_parallel, 2);
  const Choice choice(own_decisions, choices);
  if (!legal(choice)) set(d_unroll, 1);
  if (!legal(choice)) set(d_taps, 0);
}

void Contraction::set_tile(std::vector<int>& choices, int64_t columns, int64_t channels) const {
  const std::vector<int64_t> one = {1};
  double best = INFINITY;
  std::vector<int> chosen = choices;
  for (const int64_t vectors : own_decisions[d_vectors].options) {
    for (const int64_t column : d_column >= 0 ? own_decisions[d_column].options : one) {
      std::vector<int> trial = choices;
      trial[d_vectors] = nearest_option(own_decisions[d_vectors], vectors);
      if (d_column >= 0) trial[d_column] = nearest_option(own_decisions[d_column], column);
      if (column > columns || !legal(Choice(own_decisions, trial))) continue;
      const double cost = tile_cost(column, vectors, lanes, columns, channels, reuses, 1);
      if (cost >= best) continue;
      best = cost;
      chosen = std::move(trial);
    }
  }
  choices = std::move(chosen);
}

Extents Contraction::whole() const {
  const auto extent = [&](int axis) {
    return axis < 0 ? 1 : axes[static_cast<size_t>(axis)].extent;
  };
  return {extent(roles.vector), extent(roles.column), extent(roles.row)};
}

bool Contraction::rest_apart(const Choice& choice, int64_t channels) const {
  if (d_rest < 0 || choice[d_rest] == 0) return false;
  const int64_t left = channels % (choice[d_vectors] * choice[d_lanes]);
  if (left == 0 || left > (choice[d_vectors] - 1) * choice[d_lanes]) return false;
  int64_t depth = value(choice, d_parallel);
  for (const OuterLoop loop : loop_order(value(choice, d_order))) {
    if (loop == kChannels) break;
    depth -= has(loop) ? 1 : 0;
  }
  return depth <= 0;
}

// Which operand stays while the other moves.
const Contraction::LoopOrder& Contraction::loop_order(int64_t order) {
  static constexpr LoopOrder kOrders[] = {
      {kBlocks, kChannels, kRows, kColumns},   // a block of rows keeps a block of weights
      {kChannels, kBlocks, kRows, kColumns},   // weights outermost
      {kBlocks, kRows, kColumns, kChannels}};  // data outermost
  return kOrders[order];
}

Contraction::Nest Contraction::nest(int64_t order, int64_t depth,
                                    const std::array<bool, kOuterLoops>& runs) const {
  Nest nest;
  for (const OuterLoop loop : loop_order(order)) {
    if (!has(loop)) continue;
    if (runs[loop]) {
      nest.loops[static_cast<size_t>(nest.size++)] = loop;
      nest.parallel += depth > 0 ? 1 : 0;
    }
    --depth;
  }
  return nest;
}

void Contraction::canonicalise(std::vector<int>& choices, const Extents& extents,
                               bool reorders) const {
  const Choice choice(own_decisions, choices);
  shorten_tile(own_decisions, d_column, extents.columns, choices);
  shorten_tile(own_decisions, d_row, extents.rows, choices);
  const int64_t column = value(choice, d_column), row = value(choice, d_row);
  shorten_tile(own_decisions, d_block, ceil_div(extents.rows, row), choices);
  const int64_t block = value(choice, d_block);
  std::array<bool, kOuterLoops> runs{};
  runs[kBlocks] = block * row < extents.rows;
  runs[kChannels] = choice[d_vectors] * choice[d_lanes] < extents.channels;
  runs[kRows] = block > 1 && row < extents.rows;
  runs[kColumns] = column < extents.columns;
  const auto nest_now = [&] {
    return nest(value(choice, d_order), nested ? 0 : value(choice, d_parallel), runs);
  };
  const Nest wanted = nest_now();
  const auto* const end = wanted.loops.begin() + wanted.size;
  const auto* const serial = wanted.loops.begin() + wanted.parallel;
  if (d_rest >= 0 && !rest_apart(choice, extents.channels))
    choices[static_cast<size_t>(d_rest)] = 0;
  // Columns are not told apart if all are whole tiles, and never in a parallel loop.
  const bool whole_tiles =
      extents.columns % column == 0 && !tests_data && !(skips_zeros && column == 1);
  if (d_tail >= 0 && (!runs[kColumns] || whole_tiles ||
                      std::find(wanted.loops.begin(), serial, kColumns) != serial))
    choices[static_cast<size_t>(d_tail)] = 1;
  if (!reorders) return;
  // The first order and depth that make such loops; whether there are any.
  const int depths = nested ? 1 : static_cast<int>(own_decisions[d_parallel].options.size());
  const auto orders = static_cast<int>(own_decisions[d_order].options.size());
  const auto take_first = [&](const Nest& loops) {
    for (int i = 0; i < orders * depths;) {
      choices[static_cast<size_t>(d_order)] = i / depths;
      if (!nested) choices[static_cast<size_t>(d_parallel)] = i % depths;
      const Nest now = nest_now();
      if (now == loops) return true;
      i = now.loops == loops.loops ? i + 1 : (i / depths + 1) * depths;  // else of no depth
    }
    return false;
  };
  // Rows in one loop are blocks of one tile.
  const auto* const rows = std::find(wanted.loops.begin(), end, kRows);
  if (rows != end && !runs[kBlocks]) {
    Nest single = wanted;
    single.loops[static_cast<size_t>(rows - wanted.loops.begin())] = kBlocks;
    const int before = choices[static_cast<size_t>(d_block)];
    choices[static_cast<size_t>(d_block)] = 0;
    std::swap(runs[kBlocks], runs[kRows]);
    if (take_first(single)) return;
    choices[static_cast<size_t>(d_block)] = before;
    std::swap(runs[kBlocks], runs[kRows]);
  }
  const bool found = take_first(wanted);
  HONE_ASSERT(found, "the loops that were there");
}

std::string Contraction::rows_loop() const {
  std::string fused;
  for (const int axis : roles.outer) fused += axes[axis].var->name + "@";
  return fused + axes[roles.row].var->name + ".0";
}

void Contraction::append_steps(const Choice& choice, Steps& steps) const {
  const std::string innermost = append_epilogue(choice, steps);
  steps.emplace_back(schedule::ComputeAt{reduction, epilogue, innermost});
  append_reduction(choice, steps);
  if (!packed.empty()) steps.emplace_back(schedule::Layout{packed, packed_layout(choice)});
}

std::string Contraction::append_epilogue(const Choice& choice, Steps& steps) const {
  const auto name = [&](int axis) { return axes[axis].var->name; };
  const int64_t v = choice[d_lanes], vm = value(choice, d_vectors);
  const std::string vec = name(roles.vector);
  const schedule::Tail whole = pad_vector ? schedule::Tail::kPad : schedule::Tail::kMask;
  const bool apart = rest_apart(choice, axes[roles.vector].extent);
  steps.emplace_back(
      schedule::Split{epilogue, vec, {vm, v}, apart ? schedule::Tail::kPeel : whole});
  std::vector<std::string> inner;
  std::array<std::string, kOuterLoops> names;
  names[kChannels] = vec + ".0";
  if (roles.row >= 0) {
    steps.emplace_back(schedule::Split{epilogue,
                                       name(roles.row),
                                       {value(choice, d_block), value(choice, d_row)},
                                       schedule::Tail::kMask});
    names[kBlocks] = name(roles.row) + ".0";
    names[kRows] = name(roles.row) + ".1";
    inner.push_back(name(roles.row) + ".2");
  }
  if (roles.column >= 0) {
    const schedule::Tail tail =
        value(choice, d_tail) == 1 ? schedule::Tail::kPeel : schedule::Tail::kMask;
    steps.emplace_back(
        schedule::Split{epilogue, name(roles.column), {value(choice, d_column)}, tail});
    names[kColumns] = name(roles.column) + ".0";
    inner.push_back(name(roles.column) + ".1");
  }
  inner.push_back(vec + ".1");
  inner.push_back(vec + ".2");

  std::vector<std::string> outer;
  for (const int axis : roles.outer) outer.push_back(name(axis));
  const size_t fixed = outer.size();
  for (const OuterLoop loop : loop_order(value(choice, d_order))) {
    if (has(loop)) outer.push_back(names[loop]);
  }
  std::vector<std::string> order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  steps.emplace_back(schedule::Reorder{epilogue, std::move(order)});
  const size_t depth =
      std::min(outer.size(), fixed + static_cast<size_t>(value(choice, d_parallel)));
  std::string innermost = outer.back();
  if (!nested) {
    const auto end = outer.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(depth, 1));
    const std::string fused = fuse_loops(epilogue, {outer.begin(), end}, steps);
    if (end == outer.end()) innermost = fused;
    steps.emplace_back(schedule::Parallel{epilogue, fused});
  }
  for (size_t i = 0; i + 1 < inner.size(); ++i)
    steps.emplace_back(schedule::Unroll{epilogue, inner[i]});
  steps.emplace_back(schedule::Vectorize{epilogue, inner.back()});
  return innermost;
}

void Contraction::append_reduction(const Choice& choice, Steps& steps) const {
  steps.emplace_back(schedule::SetScope{reduction, ir::Scope::kRegister});
  const std::string rvec = reduction_names[roles.vector];
  if (row_lanes) {  // the lanes' results are neighbours in registers, as whole vectors
    std::vector<std::string> dims;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].extent > 1 && static_cast<int>(a) != roles.vector)
        dims.push_back(reduction_names[a]);
    }
    dims.push_back(quotient(rvec, choice[d_lanes]));
    dims.push_back(remainder(rvec, choice[d_lanes]));
    steps.emplace_back(schedule::Layout{reduction, std::move(dims)});
  }
  steps.emplace_back(schedule::Split{reduction, rvec, {choice[d_lanes]}, schedule::Tail::kMask});
  const int64_t unroll = value(choice, d_unroll);
  const std::string last = reduce.back().var->name;
  const bool split_last = unroll > 1;
  if (split_last)
    steps.emplace_back(schedule::Split{reduction, last, {unroll}, schedule::Tail::kPeel});
  std::vector<std::string> loops;
  const bool vectors_first = vectors_outside(choice);
  if (vectors_first) loops.push_back(rvec + ".0");
  const bool last_first = last_outside(choice);
  const std::string last_outer = split_last ? last + ".0" : last;
  if (last_first) loops.push_back(last_outer);
  for (size_t i = 0; i + 1 < reduce.size(); ++i) loops.push_back(reduce[i].var->name);
  if (!last_first) loops.push_back(last_outer);
  if (split_last) loops.push_back(last + ".1");
  const size_t reduce_loops = loops.size();
  for (size_t a = 0; a < axes.size(); ++a) {
    if (static_cast<int>(a) != roles.vector) loops.push_back(reduction_names[a]);
  }
  if (!vectors_first) loops.push_back(rvec + ".0");
  loops.push_back(rvec + ".1");
  steps.emplace_back(schedule::Reorder{reduction, loops});
  if (vectors_first) steps.emplace_back(schedule::Unroll{reduction, loops[0]});
  if (d_ahead >= 0 && choice[d_ahead] > 0)
    steps.emplace_back(schedule::Prefetch{reduction, streamed, last_outer, choice[d_ahead]});
  if (split_last) steps.emplace_back(schedule::Unroll{reduction, last + ".1"});
  if (taps_unrolled(choice)) {
    for (size_t i = 0; i + 1 < reduce.size(); ++i)
      steps.emplace_back(schedule::Unroll{reduction, reduce[i].var->name});
  }
  for (size_t i = reduce_loops; i + 1 < loops.size(); ++i)
    steps.emplace_back(schedule::Unroll{reduction, loops[i]});
  steps.emplace_back(schedule::Vectorize{reduction, loops.back()});
}

std::vector<std::string> Contraction::packed_layout(const Choice& choice) const {
  const auto is_packed = [&](const std::string& axis) {
    return std::count(packed_axes.begin(), packed_axes.end(), axis) > 0;
  };
  const int64_t v = choice[d_lanes], vm = value(choice, d_vectors);
  const int64_t blocks = value(choice, d_blocks), unroll = value(choice, d_unroll);
  const std::string rvec = reduction_names[roles.vector], last = reduce.back().var->name;
  std::vector<std::string> dims = {quotient(rvec, blocks * vm * v)};
  if (blocks > 1) dims.push_back(remainder(quotient(rvec, vm * v), blocks));
  for (const std::string& axis : packed_axes) {
    bool reduces = axis == rvec;
    for (const compute::Axis& r : reduce) reduces |= r.var->name == axis;
    if (!reduces) dims.push_back(axis);
  }
  const auto add_last = [&](bool first_part) {
    if (!is_packed(last)) return;
    if (unroll <= 1) {
      if (first_part) dims.push_back(last);
      return;
    }
    dims.push_back(first_part ? quotient(last, unroll) : remainder(last, unroll));
  };
  const std::string vector_dim = remainder(quotient(rvec, v), vm);
  const bool vectors_first = vectors_outside(choice), last_first = last_outside(choice);
  if (vectors_first) dims.push_back(vector_dim);
  if (last_first) add_last(true);
  for (size_t i = 0; i + 1 < reduce.size(); ++i) {
    if (is_packed(reduce[i].var->name)) dims.push_back(reduce[i].var->name);
  }
  if (!last_first) add_last(true);
  add_last(false);
  if (vm > 1 && !vectors_first) dims.push_back(vector_dim);
  dims.push_back(remainder(rvec, v));
  return dims;
}

}  // namespace hone::space
