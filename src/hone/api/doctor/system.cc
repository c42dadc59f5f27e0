#include "hone/api/doctor/system.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <set>

#include "hone/base/file.h"
#include "hone/base/memory_bound.h"
#include "hone/base/status.h"
#include "hone/measure/core_state.h"
#include "hone/target/cgroup.h"
#include "hone/target/topology.h"

namespace hone::doctor {
namespace {

using State = Finding::State;

constexpr const char* kCpuFolder = "/sys/devices/system/cpu";
// Compiling and tuning a network with 100 MB of weights takes about this much.
constexpr int64_t kLittleMemory = int64_t{1} << 30;

// The first line of a file of the system; empty if there is none.
std::string line_of(const std::string& path) {
  const Result<std::string> text = read_file(path);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

std::string gibibytes(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
}

// The governors of all CPUs that have one.
std::set<std::string> governors(const std::string& root) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& cpu : std::filesystem::directory_iterator(root + kCpuFolder, ignored)) {
    const std::string governor = line_of(cpu.path().string() + "/cpufreq/scaling_governor");
    if (!governor.empty()) names.insert(governor);
  }
  return names;
}

// Bytes that programs can still get, by /proc/meminfo; 0 if it does not say.
int64_t available_memory(const std::string& root) {
  const Result<std::string> text = read_file(root + "/proc/meminfo");
  int64_t kilobytes = 0;
  const size_t at = text.ok() ? text->find("MemAvailable:") : std::string::npos;
  if (at == std::string::npos) return 0;
  if (std::sscanf(text->c_str() + at, "MemAvailable: %" SCNd64, &kilobytes) != 1) return 0;
  return kilobytes << 10;
}

// The limit of the addresses of this process (ulimit -v); 0 if there is none.
int64_t address_limit() {
  rlimit limit = {};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? static_cast<int64_t>(limit.rlim_cur) : 0;
}

}  // namespace

Cpus cpus_here() {
  Cpus cpus;
  cpus.online = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t mask;
  cpus.allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : cpus.online;
  return cpus;
}

Finding look_at_cpus(const Cpus& cpus, const std::string& root) {
  Finding finding = {.name = "cores", .found = fmt::format("{} CPUs", cpus.online), .cure = {}};
  if (cpus.allowed < cpus.online) {
    finding.found =
        fmt::format("the affinity of this process leaves {} of {} CPUs", cpus.allowed, cpus.online);
  }
  const std::optional<double> quota = target::cgroup_cpu_quota(root);
  if (!quota || *quota >= cpus.allowed) return finding;
  finding.state = State::kWarning;
  finding.found += fmt::format(
      ", and the quota of its cgroup is worth {:.3g}: {} may run at once, and stop while they are "
      "measured",
      *quota, target::usable_cores(cpus.allowed, quota));
  finding.cure = "give it whole CPUs (docker run --cpuset-cpus, not --cpus), or raise cpu.max";
  return finding;
}

Finding look_at_separation() {
  const std::vector<int> cpus = target::cpus_of_cores();
  Finding finding = {.name = "separate cores", .found = "each thread has a core", .cure = {}};
  if (cpus.size() < 2) {
    finding.found = "there is one core";
  } else if (const measure::CoreState state = measure::look_at_cores(cpus);
             !measure::have_cores(state)) {
    finding.state = State::kWarning;
    finding.found = fmt::format(
        "{} threads at once take {:.2f} of the time of one alone: they share cores, or other "
        "programs run",
        cpus.size(), state.slowdown);
    finding.cure =
        "let other work end; on a virtual machine wait (hone devices --cores looks again)";
  }
  return finding;
}

Finding look_at_governor(const std::string& root) {
  Finding finding = {.name = "clock governor", .found = {}, .cure = {}};
  const std::set<std::string> names = governors(root);
  finding.found = names.empty() ? "not told by the system, as on most virtual machines"
                                : fmt::format("{}", fmt::join(names, ", "));
  if (names.empty() || names == std::set<std::string>{"performance"}) return finding;
  finding.state = State::kWarning;
  finding.found += ": clocks rise and fall while kernels are measured";
  finding.cure = "sudo cpupower frequency-set --governor performance";
  return finding;
}

Finding look_at_turbo(const std::string& root) {
  Finding finding = {.name = "turbo", .found = {}, .cure = {}};
  const std::string folder = root + kCpuFolder;
  const std::string off = line_of(folder + "/intel_pstate/no_turbo");
  const std::string on = line_of(folder + "/cpufreq/boost");
  if (off.empty() && on.empty()) {
    finding.found = "not told by the system, as on most virtual machines";
  } else if (off == "1" || (off.empty() && on == "0")) {
    finding.found = "off";
  } else {
    finding.found = "on: clocks depend on heat and on how many cores work, as when the model runs";
  }
  return finding;
}

Finding look_at_memory(const std::string& root) {
  Finding finding = {.name = "memory", .found = {}, .cure = {}};
  const int64_t all = memory_here().main, limit = address_limit();
  int64_t available = available_memory(root);
  if (available == 0) {
    finding.found = fmt::format("{}; the system does not say how much is free", gibibytes(all));
    return finding;
  }
  available = all > 0 ? std::min(available, all) : available;
  finding.found = fmt::format("{} of {} are free", gibibytes(available), gibibytes(all));
  if (limit > 0) {
    finding.found +=
        fmt::format(", of which this process may have {} (ulimit -v)", gibibytes(limit));
    available = std::min(available, limit);
  }
  if (available >= kLittleMemory) return finding;
  finding.state = State::kWarning;
  finding.found += ": little for networks with large weights";
  finding.cure = limit > 0 && available == limit
                     ? "ulimit -v unlimited"
                     : "end other programs, or raise the container's limit";
  return finding;
}

Finding look_at_huge_pages(const std::string& root) {
  Finding finding = {.name = "huge pages", .found = {}, .cure = {}};
  const std::string line = line_of(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    finding.state = State::kWarning;
    finding.found = "the kernel has no transparent huge pages: large tensors take longer to read";
    finding.cure = "a kernel with CONFIG_TRANSPARENT_HUGEPAGE; in a sandbox, its host's";
    return finding;
  }
  finding.found = line.substr(open + 1, close - open - 1);
  if (finding.found != "never") return finding;
  finding.state = State::kWarning;
  finding.found += ": large tensors take longer to read";
  finding.cure = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
  return finding;
}

}  // namespace hone::doctor
