// assemble.h - builds the parts of an artifact from a model's tasks with a schedule each: kernels,
// compiled once per distinct task; weights, packed at compile time and stored once; and a memory
// plan.
#pragma once

#include <atomic>
#include <span>

#include "hone/artifact/artifact.h"
#include "hone/graph/run_order.h"
#include "hone/session/partial_buffers.h"
#include "hone/session/session.h"
#include "hone/session/variant_kernels.h"
#include "hone/trial/roofline.h"

namespace hone {

// The options that decide which kernels run together (graph/run_order.h), and which run on fewer
// threads than there are.
struct TogetherOptions {
  int threads = 1;  // number of threads that the model will run on
  // The predicted seconds of each of TaskList::groups with so many threads. If it is empty, all
  // kernels run one by one.
  std::vector<double> seconds;
  // The times of a fork and join. More threads are woken for a kernel only if they are predicted to
  // save at least half of what their fork and join takes longer.
  std::vector<trial::ForkJoin> fork_join;
  graph::ArenaBound arena;  // limit of the arena if kernels run together
};

// Says whether kernels that a device cannot run have code for the host beside it.
enum class HostKernels : uint8_t { kNone, kWhereNeeded };

// The needs of runs whose sizes are smaller than the largest (session/limit_tasks.h); empty if no
// shape varies.
struct AssemblyLimits {
  std::span<const KernelLimits> kernels = {};             // one for each group
  std::span<const SizeVariants> variants = {};            // likewise
  std::span<const std::optional<ir::RunNeed>> runs = {};  // one for each call
};

struct Assembly {
  artifact::ArtifactSpec spec;
  std::vector<int> calls;  // the index into TaskList::calls of each of spec.steps
  graph::MemoryPlan plan;
  int turns = 0;  // number of groups of calls that run one after the other
  // The number of calls that run on one thread although they have tiles for several, since waking
  // other threads is predicted not to pay.
  int small = 0;
  std::vector<Tensor> weights;   // the memory that spec.weights points to
  std::vector<size_t> on_host;   // the groups of tasks that run on the host beside a device
  std::vector<VariantUse> uses;  // what each group has of AssemblyLimits::variants
  PartialBuffers partial;        // what a run leaves out as data decide
};

// Compiles the kernels, packs the weights and plans the memory. `schedules` has one element per
// TaskList::groups; `interrupted` may be null. The steps are in the order in which they run, in
// which each call comes after those that it depends on.
[[nodiscard]] Result<Assembly> assemble(Session& session, const graph::TaskList& tasks,
                                        std::span<const schedule::Steps> schedules,
                                        const std::atomic<bool>* interrupted = nullptr,
                                        const TogetherOptions& together = {},
                                        HostKernels host = HostKernels::kNone,
                                        const AssemblyLimits& limits = {});

// Compiles code that leaves out what a run of smaller sizes does not need.
[[nodiscard]] Result<KernelPtr> limited_kernel(Session& session, const TaskPtr& task,
                                               const schedule::Steps& steps,
                                               const KernelLimits& limits);

// The bytes of memory of a running model, without those that its process needs anyway.
struct ModelMemory {
  int64_t weights = 0, code = 0;
  int64_t working = 0;  // tensors between kernels, workspaces, scratch of all threads
  [[nodiscard]] int64_t total() const { return weights + code + working; }
};
[[nodiscard]] ModelMemory memory_of(const artifact::ArtifactSpec& spec, int threads);

}  // namespace hone
