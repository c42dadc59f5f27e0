// assemble.h - a model's tasks with a schedule each, as the parts of an artifact: kernels compiled
// once per distinct task, weights packed at compile time and stored once, memory planned.
#pragma once

#include <atomic>
#include <span>

#include "hone/codegen/artifact.h"
#include "hone/graph/run_order.h"
#include "hone/session/session.h"
#include "hone/trial/roofline.h"

namespace hone {

// Which kernels run together (graph/run_order.h), and which on the caller's thread alone.
struct TogetherOptions {
  int threads = 1;              // that the model will run on
  std::vector<double> seconds;  // per TaskList::groups, on so many; empty: all run one by one
  std::vector<trial::ForkJoin> fork_join;  // what others must save to be woken
  graph::ArenaBound arena;
};

struct Assembly {
  codegen::ArtifactSpec spec;
  std::vector<int> calls;  // per spec.steps: the index in TaskList::calls
  graph::MemoryPlan plan;
  int turns = 0;                // calls that run together count once
  int small = 0;                // calls that wake no thread, though they have tiles for several
  std::vector<Tensor> weights;  // what spec.weights points to
};

// `schedules`: one per TaskList::groups. `interrupted` (may be null) is looked at between kernels.
// The steps stand in the order in which they run, which keeps that of dependent calls.
[[nodiscard]] Result<Assembly> assemble(Session& session, const graph::TaskList& tasks,
                                        std::span<const schedule::Steps> schedules,
                                        const std::atomic<bool>* interrupted = nullptr,
                                        const TogetherOptions& together = {});

// What a model takes when it runs, but for what its process takes anyway.
struct ModelMemory {
  int64_t weights = 0, code = 0;
  int64_t working = 0;  // tensors between kernels, scratch of all threads
  [[nodiscard]] int64_t total() const { return weights + code + working; }
};
[[nodiscard]] ModelMemory memory_of(const codegen::ArtifactSpec& spec, int threads);

}  // namespace hone
