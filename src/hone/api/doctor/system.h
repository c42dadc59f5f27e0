// api/doctor/system.h - looks at cores, clocks, memory and pages, as the system tells of them.
// `root` is put before the names of its files (/proc, /sys); only tests set it.
#pragma once

#include <string>

#include "hone/doctor.h"

namespace hone::doctor {

// How many CPUs there are, and how many the affinity mask of this process leaves.
struct Cpus {
  int online = 1, allowed = 1;
};
[[nodiscard]] Cpus cpus_here();

[[nodiscard]] Finding look_at_cpus(const Cpus& cpus, const std::string& root = "");
// Returns whether each thread has a core of its own now.
[[nodiscard]] Finding look_at_separation();
[[nodiscard]] Finding look_at_governor(const std::string& root = "");
[[nodiscard]] Finding look_at_turbo(const std::string& root = "");
[[nodiscard]] Finding look_at_memory(const std::string& root = "");
[[nodiscard]] Finding look_at_huge_pages(const std::string& root = "");

}  // namespace hone::doctor
