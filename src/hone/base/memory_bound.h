// base/memory_bound.h - bounds the memory of this process and, below that, the memory that the
// contents of a file may take. A file that claims to be huge (a sparse file, an archive that
// unpacks to a thousand times its size) then gives an error and does not exhaust the machine's
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone {

struct MemoryHere {
  int64_t main = 0;  // bytes of this machine or, if that is less, of its container; 0: unknown
  int64_t swap = 0;  // bytes of its swap
};
[[nodiscard]] MemoryHere memory_here();

struct MemoryBound {
  int64_t bytes = 0;      // 0: unknown
  std::string_view name;  // a literal that messages contain, such as "the bound of --max-memory"
};
// Records how much the process may take. The caller enforces the bound and has started no threads.
void set_memory_bound(const MemoryBound& bound);
[[nodiscard]] MemoryBound memory_bound();
// Returns a text such as "expected at most 67108864 bytes in all, the bound of --max-memory", or an
// empty text if the bound is unknown.
[[nodiscard]] std::string memory_bound_text();

// Returns three quarters of memory_bound() or, if that is less, of what this machine without its
// swap, its container or a limit of the process (ulimit -v) leaves.
[[nodiscard]] int64_t most_input_bytes();
// Returns the text for messages such as "expected at most N bytes, as ...".
[[nodiscard]] std::string input_bound_text();
// Returns an error if a file of so many bytes is above most_input_bytes(). The message puts `has`
// in front of the number; it is "more than " if the file's end was not reached.
[[nodiscard]] Status check_input_bytes(const std::string& path, int64_t bytes,
                                       const char* has = "");

}  // namespace hone
