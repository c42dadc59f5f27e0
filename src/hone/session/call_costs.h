// session/call_costs.h - the times of calls on one thread, by which those that run together and the
// number of threads of each are chosen.
#pragma once

#include <span>
#include <vector>

#include "hone/graph/run_order.h"
#include "hone/session/assemble.h"
#include "hone/session/variant_kernels.h"

namespace hone {

// Returns the time of a kernel on one thread; `seconds` are those on all. A kernel with several
// phases must wait between them and shares its workspace, so it runs alone. So does one whose time
// is not known.
[[nodiscard]] graph::CallCost cost_of(const Kernel& kernel, double seconds,
                                      const TogetherOptions& options);
// Likewise of a variant, which runs as many tiles as its largest size needs; `seconds` are those of
// the kernel that it is a variant of.
[[nodiscard]] graph::CallCost cost_of(const VariantKernel& variant, double seconds,
                                      const TogetherOptions& options);
// Returns the costs of all calls.
[[nodiscard]] std::vector<graph::CallCost> call_costs(const graph::TaskList& tasks,
                                                      const GroupKernels& kernels,
                                                      const TogetherOptions& options);

// Returns on how many threads a call that runs for itself takes the least time; on fewer than all
// only if more would save less than half of what their fork and join takes longer: it is a
// prediction.
[[nodiscard]] int threads_of(const graph::CallCost& cost, const TogetherOptions& options);
// Returns that number, or 0 for all threads that there are or that have a tile.
[[nodiscard]] int thread_limit(const graph::CallCost& cost, const TogetherOptions& options);

}  // namespace hone
