// target/cgroup.h - how many CPUs this process may use, by its affinity mask and its cgroup's
// quota.
#pragma once

#include <optional>
#include <string>

namespace hone::target {

// Returns the CPUs that the cgroup's quota is worth (1.5 = 150 ms of CPU time in 100 ms), the least
// over the group and its parents; nothing if there is no limit. Versions 1 and 2 are read. `root`
// is put before /proc/self/cgroup and /sys/fs/cgroup; only tests set it.
[[nodiscard]] std::optional<double> cgroup_cpu_quota(const std::string& root = "");

// Returns how many whole CPUs threads can keep busy: at least 1, at most `allowed`.
[[nodiscard]] int usable_cores(int allowed, std::optional<double> quota);

}  // namespace hone::target
