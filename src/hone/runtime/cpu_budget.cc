#include "hone/runtime/cpu_budget.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace hone::runtime {
namespace {

constexpr int kPathBytes = 4096;

// The file's text, cut at `capacity`; false if it cannot be read.
bool read_text(const char* path, char* text, int capacity) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  int used = 0;
  while (used < capacity - 1) {
    const ssize_t got = read(fd, text + used, static_cast<size_t>(capacity - 1 - used));
    if (got <= 0) break;
    used += static_cast<int>(got);
  }
  close(fd);
  text[used] = '\0';
  return true;
}

int whole_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  const long long cpus = quota / period;
  return cpus < 1 ? 1 : cpus > 1'000'000 ? 0 : static_cast<int>(cpus);
}

int smaller_limit(int a, int b) { return a == 0 ? b : b == 0 ? a : a < b ? a : b; }

// Quota of one group: `cpu.max` holds "max 100000" or "150000 100000".
int quota_v2(const char* folder) {
  char path[kPathBytes];
  char text[128];
  if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= kPathBytes) return 0;
  if (!read_text(path, text, sizeof text)) return 0;
  long long quota = 0;
  long long period = 0;
  if (sscanf(text, "%lld %lld", &quota, &period) != 2) return 0;
  return whole_cpus(quota, period);
}

// A quota of -1 means none.
int quota_v1(const char* folder) {
  char path[kPathBytes];
  char quota[64];
  char period[64];
  if (snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder) >= kPathBytes) return 0;
  if (!read_text(path, quota, sizeof quota)) return 0;
  if (snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder) >= kPathBytes) return 0;
  if (!read_text(path, period, sizeof period)) return 0;
  return whole_cpus(atoll(quota), atoll(period));
}

// The strictest quota of `group` and its ancestors below `mount`. A container often sees its host's
// group path but only its own subtree: folders that are not there have no quota.
int quota_of_ancestors(const char* mount, const char* group, int (*quota)(const char*)) {
  char folder[kPathBytes];
  if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= kPathBytes) return 0;
  const size_t base = strlen(mount);
  int limit = 0;
  while (true) {
    limit = smaller_limit(limit, quota(folder));
    char* slash = strrchr(folder, '/');
    if (slash == nullptr || static_cast<size_t>(slash - folder) < base) return limit;
    *slash = '\0';
  }
}

bool has_controller(const char* list, const char* end, const char* name) {
  const size_t length = strlen(name);
  for (const char* p = list; p + length <= end; ++p) {
    const bool starts = p == list || p[-1] == ',';
    const bool ends = p + length == end || p[length] == ',';
    if (starts && ends && memcmp(p, name, length) == 0) return true;
  }
  return false;
}

// One line of /proc/self/cgroup: "id:controllers:/group", without its newline.
int quota_of_line(const char* root, const char* line) {
  const char* first = strchr(line, ':');
  const char* second = first == nullptr ? nullptr : strchr(first + 1, ':');
  if (second == nullptr) return 0;
  const char* group = second + 1;
  char mount[kPathBytes];
  int limit = 0;
  const auto add = [&](const char* place, int (*quota)(const char*)) {
    if (snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, place) >= kPathBytes) return;
    limit = smaller_limit(limit, quota_of_ancestors(mount, group, quota));
  };
  if (second == first + 1) {
    add("", quota_v2);
    add("/unified", quota_v2);
  } else if (has_controller(first + 1, second, "cpu")) {
    add("/cpu", quota_v1);
    add("/cpu,cpuacct", quota_v1);
    add("/cpuacct,cpu", quota_v1);
  }
  return limit;
}

}  // namespace

int affinity_cpus() {
  // The kernel refuses a mask smaller than its own: 64 Ki CPUs are more than any has.
  constexpr size_t kMaskBytes = 8192;
  unsigned char mask[kMaskBytes] = {};
  if (sched_getaffinity(0, kMaskBytes, reinterpret_cast<cpu_set_t*>(mask)) == 0) {
    int count = 0;
    for (int byte : mask)  // no popcount builtin: without the instruction it is a call into libgcc
      for (; byte != 0; byte &= byte - 1) ++count;
    if (count > 0) return count;
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online < 1 ? 1 : static_cast<int>(online);
}

int quota_cpus(const char* root) {
  char path[kPathBytes];
  char text[8192];
  if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= kPathBytes) return 0;
  if (!read_text(path, text, sizeof text)) return 0;
  int limit = 0;
  char* line = text;
  while (*line != '\0') {
    char* end = strchr(line, '\n');
    if (end != nullptr) *end = '\0';
    limit = smaller_limit(limit, quota_of_line(root, line));
    if (end == nullptr) break;
    line = end + 1;
  }
  return limit;
}

int usable_cpus(const char* root) { return smaller_limit(affinity_cpus(), quota_cpus(root)); }

}  // namespace hone::runtime
