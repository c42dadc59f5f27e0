#include "hone/search/task_bound.h"

#include <algorithm>
#include <cmath>

namespace hone::search {
namespace {

// Operands of small tasks come from closer caches than the last, where this is what is described.
constexpr double kCloser = 1.5;
// A rate that was measured above the description can be beaten by as much again.
constexpr double kHeadroom = 1.1;

}  // namespace

TaskWork least_work(const compute::Dag& dag, const space::Space& space) {
  TaskWork work{.flops = compute::flops(dag)};
  // An algorithm is a sketch. Its stages are counted once each: what a schedule computes again
  // comes on top. Constant stages run at compile time.
  for (int sketch = 0; sketch < space.num_sketches(); ++sketch) {
    const Result<space::Candidate> candidate = space.instantiate(space.default_point(sketch));
    if (!candidate.ok()) continue;
    compute::Dag needed;
    for (const schedule::StageState& stage : candidate->state.stages) {
      if (!stage.info->constant) needed.stages.push_back(stage.info->stage);
    }
    work.flops = std::min(work.flops, compute::flops(needed));
  }
  for (const ir::Param& param : dag.params) {
    work.bytes +=
        static_cast<double>(param.buffer->num_elements() * dtype_bytes(param.buffer->dtype));
  }
  return work;
}

TaskBounds::TaskBounds(const target::Target& target, int threads) {
  const double cycles = target.ghz * 1e9 * std::min(threads, target.cores);
  const double per_cycle =
      target.caches.empty() ? target.memory_bytes_per_cycle : target.caches.back().bytes_per_cycle;
  flops_per_second_ = 2 * target.fma_per_cycle * target.lanes(4) * cycles;
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
