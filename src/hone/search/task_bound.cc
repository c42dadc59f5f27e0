#include "hone/search/task_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/compute/bytes_moved.h"
#include "hone/schedule/step.h"

namespace hone::search {
namespace {

// Operands of small tasks come from closer caches than the last, where this is what is described.
constexpr double kCloser = 1.5;
// A description has the nominal clock; a machine that is cool or has idle cores exceeds it.
constexpr double kTurbo = 1.5;
// A rate that was measured can be beaten by so much: something else may have run beside.
constexpr double kHeadroom = 1.1;

}  // namespace

TaskWork least_work(const compute::Dag& dag, const space::Space& space) {
  bool narrow = false;
  for (int i = 0; i < space.num_sketches(); ++i)
    narrow = narrow || schedule::is_narrow(space.algorithm(i));
  return {space.least_flops(), compute::bytes_moved(dag, narrow ? 0.5 : 1)};
}

TaskBounds::TaskBounds(const target::Target& target, int threads,
                       std::optional<measure::Roofline> roofline)
    : roofline_(std::move(roofline)),
      threads_(threads),
      compute_beaten_(roofline_ ? kHeadroom : kTurbo),
      move_beaten_(roofline_ ? kHeadroom : kCloser) {
  const double cycles = target.ghz * 1e9 * std::min(threads, target.cores);
  const double per_cycle =
      target.caches.empty() ? target.memory_bytes_per_cycle : target.caches.back().bytes_per_cycle;
  flops_per_second_ = 2 * target.fma_per_cycle * target.lanes(4) * cycles;
  bytes_per_second_ = per_cycle * cycles;
}

TaskBounds::Times TaskBounds::times(const TaskWork& work) const {
  if (!roofline_) return {work.flops / flops_per_second_, work.bytes / bytes_per_second_};
  return {measure::bound(work.flops, 0, work.bytes, *roofline_, threads_).seconds,
          measure::bound(0, work.bytes, work.bytes, *roofline_, threads_).seconds};
}

bool TaskBounds::learn(const TaskWork& work, double measured) {
  if (!(measured > 0) || !std::isfinite(measured)) return false;
  const auto [compute, move] = times(work);
  const bool rose = compute > measured * compute_beaten_ || move > measured * move_beaten_;
  if (compute > measured * compute_beaten_) compute_beaten_ = kHeadroom * compute / measured;
  if (move > measured * move_beaten_) move_beaten_ = kHeadroom * move / measured;
  return rose;
}

double TaskBounds::seconds(const TaskWork& work) const {
  const auto [compute, move] = times(work);
  return std::max(compute / compute_beaten_, move / move_beaten_);
}

}  // namespace hone::search
