#include "hone/measure/host_load.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <vector>

#include "hone/base/file.h"

namespace hone::measure {
namespace {

constexpr double kWindow = 50;  // ticks of all cores, usually 1/100 s each: fewer say little
constexpr int kPatience = 4;    // windows in a row
constexpr double kOthers = 0.15, kSteal = 0.05, kSlowdown = 1.2;

// Empty without such a file: a process that has ended, or a machine without /proc.
std::string text_of(const std::string& path) {
  Result<std::string> text = read_file(path);
  return text.ok() ? *std::move(text) : "";
}

// This process with all that its threads started and that still lives: the workers.
double own_ticks() {
  double ticks = parse_process_ticks(text_of("/proc/self/stat"), true).value_or(0);
  std::error_code failure;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failure)) {
    std::istringstream children(text_of(task.path() / "children"));
    for (int pid = 0; children >> pid;)
      ticks += parse_process_ticks(text_of(fmt::format("/proc/{}/stat", pid)), false).value_or(0);
  }
  return ticks;
}

}  // namespace

std::optional<HostMonitor::Sample> sample_machine() {
  const std::optional<CpuTicks> cpu = parse_cpu_ticks(text_of("/proc/stat"));
  if (!cpu) return std::nullopt;
  double average = 0;
  if (getloadavg(&average, 1) != 1) average = 0;
  return HostMonitor::Sample{average, *cpu, own_ticks()};
}

std::optional<CpuTicks> parse_cpu_ticks(std::string_view stat) {
  std::istringstream in{std::string(stat.substr(0, stat.find('\n')))};
  std::string name;
  // user, nice, system, idle, iowait, irq, softirq, steal; what guests take is in user and nice.
  std::array<double, 8> ticks = {};
  if (!(in >> name) || name != "cpu") return std::nullopt;
  for (double& t : ticks) {
    if (!(in >> t) || t < 0) return std::nullopt;
  }
  CpuTicks result{.idle = ticks[3] + ticks[4], .steal = ticks[7]};
  for (const double t : ticks) result.total += t;
  return result;
}

std::optional<double> parse_process_ticks(std::string_view stat, bool with_children) {
  const size_t end = stat.rfind(')');  // end of the program's name, which may contain anything
  if (end == std::string_view::npos) return std::nullopt;
  std::istringstream in{std::string(stat.substr(end + 1))};
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  constexpr size_t kUserTime = 11;  // counted from the state: user, system, and those of children
  if (words.size() < kUserTime + 4) return std::nullopt;
  double ticks = 0;
  for (size_t i = kUserTime; i < kUserTime + (with_children ? 4 : 2); ++i)
    ticks += std::strtod(words[i].c_str(), nullptr);
  return ticks;
}

HostMonitor::HostMonitor() : HostMonitor(sample_machine) {}
HostMonitor::HostMonitor(Source source) : source_(std::move(source)), last_(source_()) {}

HostLoad HostMonitor::sample() {
  const std::optional<Sample> now = source_();
  if (!now) return load_;
  load_.average = now->average;
  if (!last_) last_ = now;
  const double total = now->cpu.total - last_->cpu.total;
  if (total < kWindow) return load_;
  const double steal = now->cpu.steal - last_->cpu.steal;
  const double busy = total - (now->cpu.idle - last_->cpu.idle) - steal;
  load_.others = std::clamp((busy - (now->own - last_->own)) / total, 0.0, 1.0);
  load_.steal = std::clamp(steal / total, 0.0, 1.0);
  noisy_ = load_.others > kOthers || load_.steal > kSteal ? noisy_ + 1 : 0;
  last_ = now;
  return load_;
}

std::string HostMonitor::complaint(double slowdown) {
  drifted_ = slowdown > kSlowdown || slowdown < 1 / kSlowdown ? drifted_ + 1 : 0;
  if (told_ || (noisy_ < kPatience && drifted_ < kPatience)) return "";
  told_ = true;
  std::string what;
  if (noisy_ < kPatience) {
    what = fmt::format("this machine became {:.0f}% {} while it measures",
                       100 * std::abs(slowdown - 1), slowdown > 1 ? "slower" : "faster");
  } else if (load_.steal > kSteal) {
    what = fmt::format("the host of this virtual machine takes {:.0f}% of its cores away",
                       100 * load_.steal);
  } else {
    what = fmt::format("other programs use {:.0f}% of this machine's cores", 100 * load_.others);
  }
  return what +
         ": schedules are compared in turns, so a loser is not taken for a winner, but fewer are "
         "measured and less is found than on a quiet machine";
}

}  // namespace hone::measure
