#include "hone/base/memory_bound.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace hone {
namespace {

MemoryBound current;

// Returns the number in a file of the system; 0 if there is no such file or number.
int64_t number_in(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  int64_t number = 0;
  const bool read = std::fscanf(file, "%" SCNd64, &number) == 1;
  std::fclose(file);
  return read ? number : 0;
}

MemoryHere find_memory() {
  struct sysinfo info = {};
  if (sysinfo(&info) != 0) return {};
  const auto unit = static_cast<int64_t>(info.mem_unit);
  MemoryHere memory = {static_cast<int64_t>(info.totalram) * unit,
                       static_cast<int64_t>(info.totalswap) * unit};
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (const int64_t limit = number_in(path); limit > 0)
      memory.main = std::min(memory.main, limit);
  }
  return memory;
}

// Returns the memory that files share if no bound was set.
int64_t bytes_for_inputs() {
  int64_t bytes = memory_here().main;
  rlimit process = {};
  if (getrlimit(RLIMIT_AS, &process) == 0 && process.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<int64_t>(process.rlim_cur));
  return bytes;
}

bool bound_decides() { return current.bytes > 0 && current.bytes < bytes_for_inputs(); }

}  // namespace

MemoryHere memory_here() {
  static const MemoryHere memory = find_memory();
  return memory;
}

void set_memory_bound(const MemoryBound& bound) { current = bound; }

MemoryBound memory_bound() { return current; }

std::string memory_bound_text() {
  if (current.bytes <= 0) return "";
  return fmt::format("expected at most {} bytes in all, {}", current.bytes, current.name);
}

int64_t most_input_bytes() {
  return (bound_decides() ? current.bytes : bytes_for_inputs()) / 4 * 3;
}

std::string input_bound_text() {
  return fmt::format("three quarters of {}", bound_decides() ? current.name : "the memory here");
}

Status check_input_bytes(const std::string& path, int64_t bytes, const char* has) {
  if (bytes <= most_input_bytes()) return ok_status();
  return invalid("cannot read '{}': it has {}{} bytes, expected at most {}, as {}", path, has,
                 bytes, most_input_bytes(), input_bound_text());
}

}  // namespace hone
