// target/cgroup.h - how many CPUs this process may use: affinity and the cgroup's quota.
#pragma once

#include <optional>
#include <string>

namespace hone::target {

// CPUs that the cgroup's quota is worth (1.5 = 150 ms of CPU time in 100 ms), the least over the
// group and its parents; nothing where there is no limit. `root` is "" outside of tests: it is put
// before /proc/self/cgroup and /sys/fs/cgroup. Reads versions 1 and 2.
[[nodiscard]] std::optional<double> cgroup_cpu_quota(const std::string& root = "");

// Whole CPUs that threads can keep busy: at least 1, at most `allowed`.
[[nodiscard]] int usable_cores(int allowed, std::optional<double> quota);

}  // namespace hone::target
