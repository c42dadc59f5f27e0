// tools/hone/memory_bound.h - a command that would need more memory than there is, or than
// --max-memory says, ends with one message. Without a bound the system ends a process of its
// choice.
#pragma once

#include <string>

#include "hone/base/status.h"

namespace hone::tool {

// From now on this process, and each that it starts, gets no more than the memory of this machine
// with its swap, or of its container if that is less. Whatever asks for more ends the command with
// one line and the exit code of bad input.
void bound_memory();
// Lowers that to what an option says, "64M"; an empty text changes nothing, nor does more memory.
[[nodiscard]] Status bound_memory(const std::string& text);

}  // namespace hone::tool
