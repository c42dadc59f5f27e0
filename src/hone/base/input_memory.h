// base/input_memory.h - how much memory what a file holds may take, so that one that says it is
// huge (a sparse file, an archive that unpacks to a thousand times its size) is one message and not
// the end of this process or of others.
#pragma once

#include <cstdint>

namespace hone {

// Three quarters of the memory of this machine or, if that is less, of what its cgroup or a limit
// of the process (ulimit -v) leaves to it.
[[nodiscard]] int64_t most_input_bytes();

// For messages: "expected at most N bytes, as " ...
inline constexpr const char* kInputBoundText = "three quarters of the memory here";

}  // namespace hone
