// api/doctor/programs.h - the programs and libraries that compiling and measuring need.
#pragma once

#include <string>
#include <vector>

#include "hone/doctor.h"

namespace hone::doctor {

[[nodiscard]] Finding look_at_linker();
[[nodiscard]] Finding look_at_worker();
// Compiles a kernel, lets a worker run it, and verifies it. `status` is the text of
// /proc/self/status, which says whether system calls are filtered.
[[nodiscard]] Finding look_at_measuring(const std::string& status);
[[nodiscard]] Finding look_at_counters();
[[nodiscard]] Finding look_at_shipped_records();
// The libraries that fit trees and nets.
[[nodiscard]] Finding look_at_trees();
[[nodiscard]] Finding look_at_nets();
// The Python package of Hone, beside the interpreters of `path` (the variable PATH) and in the
// folder of the user at `home`. No interpreter is started.
[[nodiscard]] Finding look_at_python(const std::string& path, const std::string& home);

}  // namespace hone::doctor
