#include "hone/base/input_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace hone {
namespace {

// Returns the number in a file of the system; 0 if there is no such file or number.
int64_t number_in(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  int64_t number = 0;
  const bool read = std::fscanf(file, "%" SCNd64, &number) == 1;
  std::fclose(file);
  return read ? number : 0;
}

int64_t memory_here() {
  int64_t bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (const int64_t limit = number_in(path); limit > 0) bytes = std::min(bytes, limit);
  }
  struct rlimit process;
  if (::getrlimit(RLIMIT_AS, &process) == 0 && process.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<int64_t>(process.rlim_cur));
  return bytes;
}

}  // namespace

int64_t most_input_bytes() {
  static const int64_t most = memory_here() / 4 * 3;
  return most;
}

}  // namespace hone
