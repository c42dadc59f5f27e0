// codegen/runtime/cpu_budget.h - how many CPUs this process may keep busy: those of its affinity
// mask, cut to what the cgroup's CPU quota pays for (v1, v2, and both mounted; every ancestor
// counts). A quota of 1.5 CPUs counts as 1: a throttled thread holds up all the others.
#pragma once

namespace hone::runtime {

// Always at least 1. `root` is put before /proc and /sys: a test's copy of them.
[[nodiscard]] int usable_cpus(const char* root = "");
// Of the affinity mask alone.
[[nodiscard]] int affinity_cpus();
// Of the quota alone; 0 if there is none.
[[nodiscard]] int quota_cpus(const char* root = "");

}  // namespace hone::runtime
