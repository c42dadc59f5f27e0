// The steps of a contraction's decisions.
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/cpu/contraction.h"

namespace hone::space {

using schedule::Steps;
using schedule::Tail;

std::string Contraction::rows_loop() const {
  std::string fused;
  for (const int axis : roles.outer) fused += axes[axis].var->name + "@";
  return fused + axes[roles.row].var->name + ".0";
}

namespace {

// The loops of a register tile, the vectorized one last.
void append_tile(const std::string& stage, const std::vector<std::string>& loops, Steps& steps) {
  for (size_t i = 0; i + 1 < loops.size(); ++i)
    steps.emplace_back(schedule::Unroll{stage, loops[i]});
  steps.emplace_back(schedule::Vectorize{stage, loops.back()});
}

// The last two of a stage's loops become one, also in their list.
void join_last_two(const std::string& stage, std::vector<std::string>& loops, Steps& steps) {
  const std::string last = loops.back();
  loops.pop_back();
  loops.back() = fuse_loops(stage, {loops.back(), last}, steps);
}

}  // namespace

void Contraction::append_steps(const Choice& choice, Steps& steps) const {
  const int64_t place = panel_place(choice);
  const std::string& last = reduce.back().var->name;
  const bool sums = value(choice, d_sums) > 1;
  if (place != kNone) panels->append_copy(steps);
  if (sums) steps.emplace_back(schedule::RFactor{reduction, last, terms(choice)});
  std::string parallel;
  const TileLoops loops = append_epilogue(choice, steps, parallel);
  const bool in_tile = loops.outer.empty();  // the parallel loop is the one around the tile
  std::string innermost = in_tile ? parallel : loops.outer.back();
  if (sums) innermost = append_sums(choice, parallel, steps);
  const std::string sum = sums ? reduction + ".rf" : reduction;
  steps.emplace_back(schedule::ComputeAt{sum, sums ? reduction : epilogue, innermost});
  append_reduction(choice, sum, steps);
  const int64_t width = choice[d_vectors] * choice[d_lanes];
  if (place == kPhase) panels->append_phase(width, steps);
  if (place == kNear && sums) panels->append_loops(reduction, last + "o", width, steps);
  if (place == kNear && !sums) panels->append_loops(epilogue, parallel, width, steps);
  if (!packed.empty()) steps.emplace_back(schedule::Layout{packed, packed_layout(choice)});
}

Contraction::TileLoops Contraction::append_tiles(const Choice& choice, const std::string& stage,
                                                 const std::vector<std::string>& names,
                                                 Steps& steps) const {
  const auto name = [&](int axis) { return names[static_cast<size_t>(axis)]; };
  const int64_t v = choice[d_lanes], vm = value(choice, d_vectors);
  const std::string vec = name(roles.vector);
  const bool joins = joined(choice) > 1;
  std::string groups = roles.groups < 0 ? "" : name(roles.groups);
  TileLoops loops;
  std::array<std::string, kOuterLoops> outer;
  if (joins) {
    steps.emplace_back(schedule::Split{stage, groups, {joined(choice)}, Tail::kMask});
    groups += ".0";
  } else {
    steps.emplace_back(schedule::Split{stage, vec, {vm, v}, channel_tail(choice)});
    outer[kChannels] = vec + ".0";
  }
  if (roles.row >= 0) {
    const std::string row = name(roles.row);
    steps.emplace_back(
        schedule::Split{stage, row, {value(choice, d_block), value(choice, d_row)}, Tail::kMask});
    outer[kBlocks] = row + ".0";
    outer[kRows] = row + ".1";
    loops.inner.push_back(row + ".2");
  }
  const bool bands = has_bands(choice);
  if (roles.column >= 0) {
    std::string column = name(roles.column);
    const int64_t width = value(choice, d_column);
    const bool peels = value(choice, d_tail) == 1;
    if (bands) {
      const bool serial = nest(choice, runs_of(choice, whole())).runs_serially(kBlocks);
      const Tail tail = serial ? Tail::kPeel : Tail::kTest;
      steps.emplace_back(
          schedule::Split{stage, column, {band(choice) * width}, peels ? tail : Tail::kMask});
      outer[kBlocks] = column + ".0";
      column += ".1";
    }
    steps.emplace_back(schedule::Split{stage, column, {width}, peels ? Tail::kPeel : Tail::kMask});
    outer[kColumns] = column + ".0";
    loops.inner.push_back(column + ".1");
  }
  loops.inner.push_back(joins ? name(roles.groups) + ".1" : vec + ".1");
  loops.inner.push_back(joins ? vec : vec + ".2");
  const int64_t place = groups_place(choice);
  for (const int axis : roles.outer) {
    if (axis != roles.groups) loops.outer.push_back(name(axis));
    if (axis == roles.groups && place == 0) loops.outer.push_back(groups);
  }
  loops.fixed = loops.outer.size();
  if (place > 0) outer[kGroups] = groups;
  for (const OuterLoop loop : loop_order(value(choice, d_order), place)) {
    if (has(loop, bands) && !outer[loop].empty()) loops.outer.push_back(outer[loop]);
  }
  return loops;
}

Contraction::TileLoops Contraction::append_epilogue(const Choice& choice, Steps& steps,
                                                    std::string& parallel) const {
  std::vector<std::string> names;
  for (const compute::Axis& axis : axes) names.push_back(axis.var->name);
  TileLoops loops = append_tiles(choice, epilogue, names, steps);
  std::vector<std::string> order = loops.outer;
  order.insert(order.end(), loops.inner.begin(), loops.inner.end());
  steps.emplace_back(schedule::Reorder{epilogue, std::move(order)});
  if (joined(choice) > 1) join_last_two(epilogue, loops.inner, steps);
  if (!nested) {
    const size_t depth = loops.fixed + static_cast<size_t>(value(choice, d_parallel));
    const auto end = loops.outer.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(
                                               std::min(loops.outer.size(), depth), 1));
    parallel = fuse_loops(epilogue, {loops.outer.begin(), end}, steps);
    loops.outer.erase(loops.outer.begin(), end);
    steps.emplace_back(schedule::Parallel{epilogue, parallel});
  }
  append_tile(epilogue, loops.inner, steps);
  return loops;
}

std::string Contraction::append_sums(const Choice& choice, const std::string& parallel,
                                     Steps& steps) const {
  steps.emplace_back(schedule::ComputeAt{reduction, epilogue, parallel});
  const TileLoops loops = append_tiles(choice, reduction, reduction_names, steps);
  std::vector<std::string> order = {reduce.back().var->name + "o"};
  order.insert(order.end(), loops.outer.begin(), loops.outer.end());
  order.insert(order.end(), loops.inner.begin(), loops.inner.end());
  steps.emplace_back(schedule::Reorder{reduction, std::move(order)});
  append_tile(reduction, loops.inner, steps);
  return loops.outer.back();
}

void Contraction::append_reduction(const Choice& choice, const std::string& sum,
                                   Steps& steps) const {
  steps.emplace_back(schedule::SetScope{sum, ir::Scope::kRegister});
  const std::string rvec = reduction_names[roles.vector];
  if (row_lanes) {  // the lanes' results are neighbours in registers, as whole vectors
    std::vector<std::string> dims;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].extent > 1 && static_cast<int>(a) != roles.vector)
        dims.push_back(reduction_names[a]);
    }
    dims.push_back(quotient(rvec, choice[d_lanes]));
    dims.push_back(remainder(rvec, choice[d_lanes]));
    steps.emplace_back(schedule::Layout{sum, std::move(dims)});
  }
  const bool joins = joined(choice) > 1;
  if (!joins)
    steps.emplace_back(schedule::Split{sum, rvec, {choice[d_lanes]}, schedule::Tail::kMask});
  const int64_t unroll = value(choice, d_unroll);
  const std::string last = reduce.back().var->name;
  const bool split_last = unroll > 1;
  if (split_last) steps.emplace_back(schedule::Split{sum, last, {unroll}, schedule::Tail::kPeel});
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
    if (static_cast<int>(a) == roles.vector || (joins && static_cast<int>(a) == roles.groups))
      continue;
    loops.push_back(reduction_names[a]);
  }
  if (!joins && !vectors_first) loops.push_back(rvec + ".0");
  if (joins) loops.push_back(reduction_names[roles.groups]);
  loops.push_back(joins ? rvec : rvec + ".1");
  steps.emplace_back(schedule::Reorder{sum, loops});
  if (joins) join_last_two(sum, loops, steps);
  if (vectors_first) steps.emplace_back(schedule::Unroll{sum, loops[0]});
  if (d_ahead >= 0 && choice[d_ahead] > 0)
    steps.emplace_back(schedule::Prefetch{sum, streamed, last_outer, choice[d_ahead]});
  if (split_last) steps.emplace_back(schedule::Unroll{sum, last + ".1"});
  if (taps_unrolled(choice)) {
    for (size_t i = 0; i + 1 < reduce.size(); ++i)
      steps.emplace_back(schedule::Unroll{sum, reduce[i].var->name});
  }
  for (size_t i = reduce_loops; i + 1 < loops.size(); ++i)
    steps.emplace_back(schedule::Unroll{sum, loops[i]});
  steps.emplace_back(schedule::Vectorize{sum, loops.back()});
}

std::vector<std::string> Contraction::packed_layout(const Choice& choice) const {
  const auto is_packed = [&](const std::string& axis) {
    return std::count(packed_axes.begin(), packed_axes.end(), axis) > 0;
  };
  const int64_t v = choice[d_lanes], vm = value(choice, d_vectors);
  const int64_t blocks = value(choice, d_blocks), unroll = value(choice, d_unroll);
  const std::string rvec = reduction_names[roles.vector], last = reduce.back().var->name;
  const int64_t join = joined(choice);
  const std::string groups = join > 1 ? reduction_names[roles.groups] : "";
  std::vector<std::string> dims = {join > 1 ? quotient(groups, join)
                                            : quotient(rvec, blocks * vm * v)};
  if (join == 1 && blocks > 1) dims.push_back(remainder(quotient(rvec, vm * v), blocks));
  for (const std::string& axis : packed_axes) {
    bool reduces = axis == rvec || axis == groups;
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
  if (join > 1) dims.push_back(remainder(groups, join));
  dims.push_back(join > 1 ? rvec : remainder(rvec, v));
  return dims;
}

}  // namespace hone::space
