// base/input_memory.h - bounds the memory that the contents of a file may take. A file that claims
// to be huge (a sparse file, an archive that unpacks to a thousand times its size) then gives an
// error and does not exhaust the machine's memory.
#pragma once

#include <cstdint>

namespace hone {

// Returns three quarters of the memory of this machine or, if that is less, of what its cgroup or a
// limit of the process (ulimit -v) leaves to it.
[[nodiscard]] int64_t most_input_bytes();

// Messages use this text as in "expected at most N bytes, as ...".
inline constexpr const char* kInputBoundText = "three quarters of the memory here";

}  // namespace hone
