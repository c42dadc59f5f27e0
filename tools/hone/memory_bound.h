// tools/hone/memory_bound.h - a command that would need more memory than there is ends with one
// message. Without a bound the system ends a process of its choice.
#pragma once

#include <cstdint>

namespace hone::tool {

// The memory of this machine, swap included, or of its container if that is less; 0: not known.
[[nodiscard]] int64_t memory_here();
// From now on this process, and each that it starts, gets no more than that. Whatever asks for more
// ends the command with one line and the exit code of bad input.
void bound_memory();

}  // namespace hone::tool
