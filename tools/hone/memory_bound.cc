#include "memory_bound.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <new>

#include "command.h"
#include "interrupt.h"

namespace hone::tool {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // their shadow memory is larger than any machine's
#else
constexpr bool kSanitized = false;
#endif

// What a file of the system says in digits; 0 where there is no such file or number.
int64_t number_in(const char* path) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return 0;
  int64_t number = 0;
  const bool read = std::fscanf(file, "%" SCNd64, &number) == 1;
  std::fclose(file);
  return read ? number : 0;
}

char message[160];

[[noreturn]] void out_of_memory() { end_process(message, kExitBadInput); }

}  // namespace

int64_t memory_here() {
  struct sysinfo info = {};
  if (sysinfo(&info) != 0) return 0;
  const auto unit = static_cast<int64_t>(info.mem_unit);
  int64_t bytes = static_cast<int64_t>(info.totalram) * unit;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (const int64_t limit = number_in(path); limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes + static_cast<int64_t>(info.totalswap) * unit;
}

void bound_memory() {
  const int64_t bytes = memory_here();
  rlimit limit = {};
  const bool known = bytes > 0 && !kSanitized && getrlimit(RLIMIT_DATA, &limit) == 0;
  if (known && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > static_cast<rlim_t>(bytes))) {
    limit.rlim_cur = static_cast<rlim_t>(bytes);
    setrlimit(RLIMIT_DATA, &limit);
  }
  const auto end = fmt::format_to_n(message, sizeof message - 1,
                                    "out of memory: more than the {:.1f} GiB of this machine",
                                    static_cast<double>(limit.rlim_cur) / (1 << 30));
  *end.out = '\0';
  if (!known || limit.rlim_cur == RLIM_INFINITY)
    std::snprintf(message, sizeof message, "out of memory");
  std::set_new_handler(out_of_memory);
}

}  // namespace hone::tool
