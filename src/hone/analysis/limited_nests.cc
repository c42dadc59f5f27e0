#include "hone/analysis/limited_nests.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "hone/base/round_up.h"

namespace hone::analysis {
namespace {

using schedule::Annotation;

// A loop of a nest: parts of one digit of a fused loop are counted from the outermost one on.
using LoopKey = std::tuple<int, int, int>;

std::vector<LoopKey> keys_of(std::span<const NestLoop> loops) {
  std::map<std::pair<int, int>, int> seen;
  std::vector<LoopKey> keys;
  for (const NestLoop& loop : loops)
    keys.emplace_back(loop.stage, loop.loop, seen[{loop.stage, loop.loop}]++);
  return keys;
}

bool may_end(const NestLoop& loop) {
  return loop.annotation == Annotation::kNone || loop.annotation == Annotation::kParallel;
}

}  // namespace

NestLimits::NestLimits(const schedule::State& state, const schedule::Bounds& bounds,
                       std::span<const AxisPart> parts, std::span<const Nest> nests) {
  std::map<LoopKey, size_t> found;
  for (const AxisPart& part : parts) {
    const StageLoops nest = stage_loops(state, bounds, part.stage);
    const std::span<const int64_t> moves = nest.axes[static_cast<size_t>(part.axis)];
    const std::vector<LoopKey> keys = keys_of(nest.loops);
    std::vector<Step>& steps = parts_.emplace_back();
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      const int64_t length = std::abs(moves[i]);
      if (length == 0 || (part.period > 0 && length >= part.period)) continue;
      const bool ends = may_end(nest.loops[i]);
      const size_t loop = ends ? found.try_emplace(keys[i], found.size()).first->second : 0;
      steps.push_back({loop, length, nest.loops[i].extent, ends});
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.length > b.length; });
  }
  loops_ = found.size();
  for (const Nest& nest : nests) {
    std::vector<size_t>& loops = nests_.emplace_back();
    for (const LoopKey& key : keys_of(nest.loops)) {
      const auto at = found.find(key);
      loops.push_back(at == found.end() ? loops_ : at->second);
    }
  }
}

void NestLimits::shorten(std::span<const int64_t> points, std::span<Nest> nests) const {
  if (loops_ == 0) return;
  std::vector<int64_t> trips(loops_, 0);
  for (size_t p = 0; p < parts_.size(); ++p) {
    int64_t left = points[p];
    for (const Step& step : parts_[p]) {
      int64_t count = step.extent;
      if (step.may_end) {
        count = std::clamp<int64_t>(ceil_div(left, step.length), 1, step.extent);
        trips[step.loop] = std::max(trips[step.loop], count);
      }
      // The loops inside end early in the last iteration, so they are shorter in the mean.
      left = count > 1 ? ceil_div(std::min(left, step.length * count), count)
                       : std::min(left, step.length);
    }
  }
  for (size_t n = 0; n < nests.size(); ++n) {
    Nest& nest = nests[n];
    bool changed = false;
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      const size_t loop = nests_[n][i];
      if (loop == loops_ || trips[loop] >= nest.loops[i].extent) continue;
      nest.loops[i].extent = trips[loop];
      changed = true;
    }
    if (!changed) continue;
    for (NestAccess& access : nest.accesses) access.remember_reaches(nest.loops);
  }
}

}  // namespace hone::analysis
