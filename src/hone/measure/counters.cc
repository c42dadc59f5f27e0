#include "hone/measure/counters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>

#include "hone/base/file.h"
#include "hone/base/options.h"

namespace hone::measure {
namespace {

int open_event(uint32_t type, uint64_t config, int thread, int leader) {
  perf_event_attr attributes = {};
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = config;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.disabled = leader < 0;  // the others follow the leader
  attributes.exclude_kernel = attributes.exclude_hv = 1;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, thread, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

std::string paranoid_text() {
  const Result<std::string> level = read_file("/proc/sys/kernel/perf_event_paranoid");
  if (!level.ok()) return "";
  return fmt::format(" (kernel.perf_event_paranoid is {})", level->substr(0, level->find('\n')));
}

Result<std::vector<int>> threads_of_process() {
  std::vector<int> threads;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failure))
    threads.push_back(
        static_cast<int>(parse_int(entry.path().filename().string(), 1, INT_MAX).value()));
  if (failure || threads.empty()) return error(Code::kIo, "cannot list /proc/self/task");
  return threads;
}

Result<HardwareEvents> find_and_try() {
  HONE_ASSIGN_OR_RETURN(HardwareEvents events, find_events(target::read_cpuid()));
  HONE_RETURN_IF_ERROR(Counters::open(events.type, events.configs).status());
  return events;
}

}  // namespace

std::optional<std::vector<double>> add_up(std::span<const GroupCounts> groups) {
  std::optional<std::vector<double>> sums;
  for (const GroupCounts& group : groups) {
    if (group.enabled == 0) continue;  // the thread slept
    if (group.running == 0) return std::nullopt;
    const double scale = static_cast<double>(group.enabled) / static_cast<double>(group.running);
    if (!sums) sums.emplace(group.counts.size());
    for (size_t i = 0; i < group.counts.size(); ++i)
      (*sums)[i] += scale * static_cast<double>(group.counts[i]);
  }
  return sums;
}

Result<Counters> Counters::open(uint32_t type, std::span<const uint64_t> configs) {
  Counters counters;
  HONE_ASSIGN_OR_RETURN(const std::vector<int> threads, threads_of_process());
  for (const int thread : threads) HONE_RETURN_IF_ERROR(counters.add_thread(thread, type, configs));
  return counters;
}

Status Counters::add_thread(int thread, uint32_t type, std::span<const uint64_t> configs) {
  std::vector<int>& events = threads_.emplace_back();
  for (const uint64_t config : configs) {
    const int fd = open_event(type, config, thread, events.empty() ? -1 : events[0]);
    if (fd < 0) {
      const int code = errno;
      const bool forbidden = code == EACCES || code == EPERM;
      return error(Code::kUnsupported, "the system does not open the counters: {}{}",
                   errno_text(code), forbidden ? paranoid_text() : "");
    }
    events.push_back(fd);
  }
  return ok_status();
}

Counters::~Counters() {
  for (const std::vector<int>& events : threads_) {
    for (const int fd : events) close(fd);
  }
}

void Counters::start() const {
  for (const std::vector<int>& events : threads_)
    ioctl(events[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

void Counters::stop() const {
  for (const std::vector<int>& events : threads_)
    ioctl(events[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

Result<std::vector<double>> Counters::counts() const {
  std::vector<GroupCounts> groups;
  for (const std::vector<int>& events : threads_) {
    constexpr size_t kHead = 3;  // number of events, time enabled, time running
    std::vector<uint64_t> words(kHead + events.size());
    const auto bytes = static_cast<ssize_t>(words.size() * sizeof(uint64_t));
    if (read(events[0], words.data(), static_cast<size_t>(bytes)) != bytes ||
        words[0] != events.size())
      return error(Code::kIo, "cannot read the counters: {}", errno_text(errno));
    groups.push_back({words[1], words[2], {words.begin() + kHead, words.end()}});
  }
  std::optional<std::vector<double>> sums = add_up(groups);
  if (!sums) return error(Code::kUnsupported, "other programs use the counters");
  return *std::move(sums);
}

const Result<HardwareEvents>& machine_events() {
  static const Result<HardwareEvents> events = find_and_try();
  return events;
}

Result<trial::CountedBounds> count_bounds(const HardwareEvents& events,
                                          const std::function<void(const Counters&)>& run) {
  HONE_ASSIGN_OR_RETURN(const Counters counters, Counters::open(events.type, events.configs));
  run(counters);
  HONE_ASSIGN_OR_RETURN(const std::vector<double> counts, counters.counts());
  const std::optional<trial::BoundScores> scores = events.plan->scores(counts);
  if (!scores) return error(Code::kUnsupported, "{} counted nothing", events.plan->name);
  return trial::CountedBounds{*scores, std::string(events.plan->name)};
}

}  // namespace hone::measure
