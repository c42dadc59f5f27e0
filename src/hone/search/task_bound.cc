#include "hone/search/task_bound.h"

#include <algorithm>
#include <cmath>

#include "hone/compute/bytes_moved.h"
#include "hone/schedule/step.h"

namespace hone::search {
namespace {

// Operands of small tasks come from closer caches than the last, where this is what is described.
constexpr double kCloser = 1.5;
// A description has the nominal clock; a machine that is cool or has idle cores exceeds it.
constexpr double kTurbo = 1.5;
// A rate that was measured above the description can be beaten by as much again.
constexpr double kHeadroom = 1.1;

}  // namespace

TaskWork least_work(const compute::Dag& dag, const space::Space& space) {
  bool narrow = false;
  for (int i = 0; i < space.num_sketches(); ++i)
    narrow = narrow || schedule::is_narrow(space.algorithm(i));
  return {space.least_flops(), compute::bytes_moved(dag, narrow ? 0.5 : 1)};
}

TaskBounds::TaskBounds(const target::Target& target, int threads) {
  const double cycles = target.ghz * 1e9 * std::min(threads, target.cores);
  const double per_cycle =
      target.caches.empty() ? target.memory_bytes_per_cycle : target.caches.back().bytes_per_cycle;
  flops_per_second_ = kTurbo * 2 * target.fma_per_cycle * target.lanes(4) * cycles;
  bytes_per_second_ = kCloser * per_cycle * cycles;
}

bool TaskBounds::learn(const TaskWork& work, double measured) {
  if (!(measured > 0) || !std::isfinite(measured)) return false;
  const double flops = work.flops / measured, bytes = work.bytes / measured;
  const bool rose = flops > flops_per_second_ || bytes > bytes_per_second_;
  if (flops > flops_per_second_) flops_per_second_ = kHeadroom * flops;
  if (bytes > bytes_per_second_) bytes_per_second_ = kHeadroom * bytes;
  return rose;
}

double TaskBounds::seconds(const TaskWork& work) const {
  return std::max(work.flops / flops_per_second_, work.bytes / bytes_per_second_);
}

}  // namespace hone::search
