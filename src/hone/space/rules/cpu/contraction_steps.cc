// The steps of a contraction's decisions.
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/cpu/contraction.h"

namespace hone::space {

using schedule::Steps;
using enum TileDecisions::Role;

std::string Contraction::rows_loop() const {
  std::string fused;
  for (const int axis : roles.outer) fused += axes[axis].var->name + "@";
  return fused + axes[roles.row].var->name + ".0";
}

void Contraction::append_steps(const Choice& choice, Steps& steps) const {
  const int64_t place = or_zero(choice, kPanels);
  const std::string& last = reduce.back().var->name;
  const bool sums = value(choice, kSumBlocks) > 1;
  if (place != kNone) panels->append_copy(steps);
  if (sums) steps.emplace_back(schedule::RFactor{reduction, last, terms(choice)});
  const TileNest nest = this->nest(choice);
  std::string parallel;
  std::string innermost = append_epilogue(nest, steps, parallel);
  if (sums) innermost = append_sums(nest, parallel, steps);
  const std::string sum = sums ? reduction + ".rf" : reduction;
  steps.emplace_back(schedule::ComputeAt{sum, sums ? reduction : epilogue, innermost});
  append_reduction(choice, sum, steps);
  const int64_t width = nest.tile().width();
  if (place == kPhase) panels->append_phase(width, steps);
  if (place == kNear && sums) panels->append_loops(reduction, last + "o", width, steps);
  if (place == kNear && !sums) panels->append_loops(epilogue, parallel, width, steps);
  if (!packed.empty()) steps.emplace_back(schedule::Layout{packed, packed_layout(choice)});
}

std::string Contraction::append_epilogue(const TileNest& nest, Steps& steps,
                                         std::string& parallel) const {
  LoopNest loops = nest.split(epilogue, names_of(axes), steps);
  if (nested) loops.parallel = 0;
  parallel = append_nest(epilogue, loops, steps);
  return loops.parallel == loops.outer.size() ? parallel : loops.outer.back();
}

std::string Contraction::append_sums(const TileNest& nest, const std::string& parallel,
                                     Steps& steps) const {
  steps.emplace_back(schedule::ComputeAt{reduction, epilogue, parallel});
  LoopNest loops = nest.split(reduction, reduction_names, steps);
  loops.outer.insert(loops.outer.begin(), reduce.back().var->name + "o");
  loops.parallel = 0;
  append_nest(reduction, loops, steps);
  return loops.outer.back();
}

std::vector<std::string> Contraction::reduction_loops(const Choice& choice,
                                                      size_t& along_sum) const {
  const bool joins = value(choice, kJoin) > 1, vectors_first = vectors_outside(choice);
  const bool splits = value(choice, kUnroll) > 1, last_first = last_outside(choice);
  const std::string &channels = reduction_names[roles.vector], &last = reduce.back().var->name;
  std::vector<std::string> loops;
  if (vectors_first) loops.push_back(channels + ".0");
  if (last_first) loops.push_back(splits ? last + ".0" : last);
  for (size_t i = 0; i + 1 < reduce.size(); ++i) loops.push_back(reduce[i].var->name);
  if (!last_first) loops.push_back(splits ? last + ".0" : last);
  if (splits) loops.push_back(last + ".1");
  along_sum = loops.size();
  for (size_t a = 0; a < axes.size(); ++a) {
    const int axis = static_cast<int>(a);
    if (axis != roles.vector && !(joins && axis == roles.groups))
      loops.push_back(reduction_names[a]);
  }
  if (!joins && !vectors_first) loops.push_back(channels + ".0");
  if (joins) loops.push_back(reduction_names[roles.groups]);
  loops.push_back(joins ? channels : channels + ".1");
  return loops;
}

void Contraction::append_reduction(const Choice& choice, const std::string& sum,
                                   Steps& steps) const {
  const RegisterTile tile = tile_of(choice);
  steps.emplace_back(schedule::SetScope{sum, ir::Scope::kRegister});
  const std::string &channels = reduction_names[roles.vector], &last = reduce.back().var->name;
  if (row_lanes) {  // the lanes' results are neighbours in registers, as whole vectors
    std::vector<std::string> dims;
    for (size_t a = 0; a < axes.size(); ++a) {
      if (axes[a].extent > 1 && static_cast<int>(a) != roles.vector)
        dims.push_back(reduction_names[a]);
    }
    dims.push_back(quotient(channels, tile.lanes));
    dims.push_back(remainder(channels, tile.lanes));
    steps.emplace_back(schedule::Layout{sum, std::move(dims)});
  }
  if (tile.joined == 1)
    steps.emplace_back(schedule::Split{sum, channels, {tile.lanes}, schedule::Tail::kMask});
  const int64_t unroll = value(choice, kUnroll);
  if (unroll > 1) steps.emplace_back(schedule::Split{sum, last, {unroll}, schedule::Tail::kPeel});
  size_t along_sum = 0;
  std::vector<std::string> loops = reduction_loops(choice, along_sum);
  steps.emplace_back(schedule::Reorder{sum, loops});
  if (tile.joined > 1) {
    const std::string last = loops.back();
    loops.pop_back();
    loops.back() = fuse_loops(sum, {loops.back(), last}, steps);
  }
  if (vectors_outside(choice)) steps.emplace_back(schedule::Unroll{sum, loops[0]});
  if (const int64_t ahead = or_zero(choice, kAhead); ahead > 0)
    steps.emplace_back(schedule::Prefetch{sum, streamed, unroll > 1 ? last + ".0" : last, ahead});
  if (unroll > 1) steps.emplace_back(schedule::Unroll{sum, last + ".1"});
  std::vector<std::string> unrolled;
  if (taps_unrolled(choice)) unrolled = names_of(std::span(reduce).first(reduce.size() - 1));
  const auto tile_loops = loops.begin() + static_cast<std::ptrdiff_t>(along_sum);
  unrolled.insert(unrolled.end(), tile_loops, loops.end() - 1);
  append_body(sum, unrolled, loops.back(), steps);
}

std::vector<std::string> Contraction::packed_layout(const Choice& choice) const {
  const auto is_packed = [&](const std::string& axis) {
    return std::count(packed_axes.begin(), packed_axes.end(), axis) > 0;
  };
  const RegisterTile tile = tile_of(choice);
  const int64_t v = tile.lanes, vm = tile.vectors, join = tile.joined;
  const int64_t blocks = value(choice, kPackedBlocks), unroll = value(choice, kUnroll);
  const std::string rvec = reduction_names[roles.vector], last = reduce.back().var->name;
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
