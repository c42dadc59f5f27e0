// runtime/cpu_budget.h - how many CPUs this process may keep busy: those of its affinity
// mask, limited by the cgroup's CPU quota (v1, v2, or both mounted; every ancestor counts). A quota
// of 1.5 CPUs counts as 1, as a throttled thread delays all the others.
#pragma once

namespace hone::runtime {

// Returns at least 1. `root` is put before /proc and /sys; tests set it to a copy of them.
[[nodiscard]] int usable_cpus(const char* root = "");
// Returns the number of CPUs in the affinity mask.
[[nodiscard]] int affinity_cpus();
// Returns the number of CPUs that the quota pays for; 0 if there is none.
[[nodiscard]] int quota_cpus(const char* root = "");

}  // namespace hone::runtime
