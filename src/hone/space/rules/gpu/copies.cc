#include "hone/space/rules/gpu/copies.h"

#include "hone/base/round_up.h"
#include "hone/space/sketch.h"

namespace hone::space {

using schedule::Steps;

std::string append_threads(const std::string& stage, const std::vector<std::string>& loops,
                           int64_t points, int64_t threads, int64_t most_unrolled, Steps& steps) {
  const std::string fused = fuse_loops(stage, loops, steps);
  steps.emplace_back(schedule::Split{stage, fused, {threads}});
  steps.emplace_back(schedule::Reorder{stage, {fused + ".1", fused + ".0"}});
  steps.emplace_back(schedule::Bind{stage, fused + ".1"});
  if (ceil_div(points, threads) <= most_unrolled)
    steps.emplace_back(schedule::Unroll{stage, fused + ".0"});
  return fused + ".0";
}

void append_copy(const SharedCopy& copy, Steps& steps) {
  steps.emplace_back(schedule::ComputeAt{copy.stage, copy.reader, copy.loop});
  steps.emplace_back(schedule::SetScope{copy.stage, ir::Scope::kShared});
  if (copy.dims.size() > 1 || copy.pad > 0) {
    steps.emplace_back(schedule::Layout{copy.stage, copy.dims});
    if (copy.pad > 0)
      std::get<schedule::Layout>(steps.back()).dims.back() += fmt::format("+{}", copy.pad);
  }
  std::vector<std::string> loops = copy.axes;
  const std::string lane = copy.axes.back() + ".1";
  if (copy.vector > 1) {
    steps.emplace_back(schedule::Split{copy.stage, copy.axes.back(), {copy.vector}});
    loops.back() += ".0";
  }
  if (loops.size() > 1) {
    steps.emplace_back(schedule::Reorder{copy.stage, loops});
    if (copy.vector > 1) std::get<schedule::Reorder>(steps.back()).loops.push_back(lane);
  }
  append_threads(copy.stage, loops, ceil_div(copy.elements, copy.vector), copy.threads,
                 copy.most_unrolled, steps);
  if (copy.vector > 1) steps.emplace_back(schedule::Vectorize{copy.stage, lane});
  if (copy.depth > 1)
    steps.emplace_back(schedule::Pipeline{copy.stage, copy.depth, copy.transport});
}

}  // namespace hone::space
