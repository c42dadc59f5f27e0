// tools/hone/memory_bound.h - ends a command with one message if it needs more memory than there is
// or than --max-memory allows. Without this bound the system would end a process of its choice.
#pragma once

#include <string>

#include "hone/base/status.h"

namespace hone::tool {

// Limits this process, and each that it starts, to the memory of this machine with its swap, or of
// its container if that is less. An allocation beyond that ends the command with one line and the
// exit code of bad input.
void bound_memory();
// Lowers the limit to the value of an option such as "64M". An empty text and a value above the
// limit change nothing.
[[nodiscard]] Status bound_memory(const std::string& text);

}  // namespace hone::tool
