#include "hone/search/task_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "hone/base/round_up.h"
#include "hone/compute/bytes_moved.h"
#include "hone/trial/accuracy.h"

namespace hone::search {
namespace {

// A description has the nominal clock; a machine that is cool or has idle cores exceeds it (1.75
// was met). Too low a bound costs a little time, too high a one ends a search.
constexpr double kTurbo = 2;
// What a kernel of the search reached another schedule may exceed by so much: more than what the
// scheduler takes for the limit (kAtLimit), so that no search ends for it.
constexpr double kHeadroom = 1.1;
// What a roofline says, whose programs do nothing else, may be exceeded by so much.
constexpr double kRooflineHeadroom = 1.02;

}  // namespace

TaskWork least_work(const compute::Dag& dag, const space::Space& space) {
  bool narrow = false;
  for (int i = 0; i < space.num_sketches(); ++i)
    narrow = narrow || trial::is_narrow(space.algorithm(i));
  return {space.least_flops(), compute::bytes_moved(dag, narrow ? 0.5 : 1)};
}

TaskBounds::TaskBounds(const target::Target& target, int threads,
                       std::optional<trial::Roofline> roofline)
    : roofline_(std::move(roofline)),
      threads_(threads),
      compute_{roofline_ ? kRooflineHeadroom : kTurbo, roofline_.has_value()},
      move_(compute_) {
  std::visit([this](const auto& part) { describe(part); }, target.part);
}

// Data comes from the closest cache that may hold all of it, by all threads; a model's operands
// come from the last one at best where its neighbours' data do not fit, which is not known here.
void TaskBounds::describe(const target::Cpu& cpu) {
  const int busy_cores = std::min(threads_, cpu.cores);
  const double cycles_per_second = cpu.ghz * 1e9 * busy_cores;
  flops_per_second_ = 2 * cpu.fma_per_cycle * cpu.lanes(4) * cycles_per_second;
  for (const target::Cache& cache : cpu.caches) {
    const int caches = ceil_div(busy_cores, cache.shared_by);
    levels_.push_back(
        {static_cast<double>(cache.bytes * caches), cache.bytes_per_cycle * cycles_per_second});
  }
  if (levels_.empty()) levels_.push_back({0, cpu.memory_bytes_per_cycle * cycles_per_second});
}

// Of twice what the L2 holds, half may still be there from the kernel before.
void TaskBounds::describe(const target::Gpu& gpu) {
  const double cycles_per_second = gpu.ghz * 1e9 * gpu.sms;
  double fma_per_cycle = gpu.fma_per_cycle;
  for (const target::MatrixInstruction& matrix : gpu.matrix)
    fma_per_cycle = std::max(fma_per_cycle, matrix.fma_per_cycle);
  flops_per_second_ = 2 * fma_per_cycle * cycles_per_second;
  levels_.push_back(
      {2 * static_cast<double>(gpu.l2_bytes), gpu.l2_bytes_per_cycle * cycles_per_second});
  levels_.push_back({0, gpu.memory_bandwidth > 0 ? gpu.memory_bandwidth
                                                 : std::numeric_limits<double>::infinity()});
}

double TaskBounds::bytes_per_second(double bytes) const {
  for (const Level& level : levels_) {
    if (bytes <= level.bytes) return level.bytes_per_second;
  }
  return levels_.back().bytes_per_second;
}

TaskBounds::Times TaskBounds::times(const TaskWork& work) const {
  if (!roofline_)
    return {work.flops / flops_per_second_, work.bytes / bytes_per_second(work.bytes)};
  return {trial::bound(work.flops, 0, work.bytes, *roofline_, threads_).seconds,
          trial::bound(0, work.bytes, work.bytes, *roofline_, threads_).seconds};
}

bool TaskBounds::Excess::learn(double faster) {
  if (known && faster <= factor) return false;
  known = false;
  if (kHeadroom * faster <= factor) return false;
  factor = kHeadroom * faster;
  return true;
}

bool TaskBounds::learn(const TaskWork& work, double measured) {
  if (!(measured > 0) || !std::isfinite(measured)) return false;
  const auto [compute, move] = times(work);
  const bool computes_faster = compute_.learn(compute / measured);
  const bool moves_faster = move_.learn(move / measured);
  return computes_faster || moves_faster;
}

double TaskBounds::seconds(const TaskWork& work) const {
  const auto [compute, move] = times(work);
  return std::max(compute / compute_.factor, move / move_.factor);
}

}  // namespace hone::search
