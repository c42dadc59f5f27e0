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

// Adds the trips of the loops that move along an axis.
void add_trips(const StageLoops& nest, const AxisPart& part, std::map<LoopKey, int64_t>& trips) {
  const std::span<const int64_t> moves = nest.axes[static_cast<size_t>(part.axis)];
  const std::vector<LoopKey> keys = keys_of(nest.loops);
  std::vector<size_t> order;  // from the longest step to the shortest
  for (size_t i = 0; i < nest.loops.size(); ++i)
    if (moves[i] != 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(moves[a]) > std::abs(moves[b]); });
  int64_t points = part.points;
  for (const size_t i : order) {
    const int64_t step = std::abs(moves[i]);
    if (part.period > 0 && step >= part.period) continue;
    const int64_t whole = nest.loops[i].extent;
    int64_t count = whole;
    if (may_end(nest.loops[i])) {
      count = std::clamp<int64_t>(ceil_div(points, step), 1, whole);
      const auto [entry, fresh] = trips.try_emplace(keys[i], count);
      if (!fresh) entry->second = std::max(entry->second, count);
    }
    // The loops inside end early in the last iteration, so they are shorter in the mean.
    points = count > 1 ? ceil_div(std::min(points, step * count), count) : std::min(points, step);
  }
}

}  // namespace

void limit_nests(const schedule::State& state, const schedule::Bounds& bounds,
                 std::span<const AxisPart> parts, std::span<Nest> nests) {
  std::map<LoopKey, int64_t> trips;
  for (const AxisPart& part : parts) add_trips(stage_loops(state, bounds, part.stage), part, trips);
  if (trips.empty()) return;
  for (Nest& nest : nests) {
    const std::vector<LoopKey> keys = keys_of(nest.loops);
    bool changed = false;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto it = trips.find(keys[i]);
      if (it == trips.end() || it->second >= nest.loops[i].extent) continue;
      nest.loops[i].extent = it->second;
      changed = true;
    }
    if (!changed) continue;
    for (NestAccess& access : nest.accesses) access.remember_reaches(nest.loops);
  }
}

}  // namespace hone::analysis
