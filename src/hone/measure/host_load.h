// measure/host_load.h - observes what else runs on this machine while candidates are timed: the
// share of its cores that other programs use, and the share that the host of a virtual machine
// takes away (Linux: /proc). It warns once if times are in doubt.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hone::measure {

struct HostLoad {
  double average = 0;  // 1-minute load average
  double others = 0;   // share of all cores, from 0 to 1, that other programs used
  double steal = 0;    // share of all cores that the host of this virtual machine used
};

// Ticks of all cores since the machine was started.
struct CpuTicks {
  double total = 0, idle = 0, steal = 0;
};
// Parses the first line of /proc/stat.
[[nodiscard]] std::optional<CpuTicks> parse_cpu_ticks(std::string_view stat);
// Parses /proc/PID/stat. Returns the ticks of a process and, with `with_children`, of its children
// that have ended.
[[nodiscard]] std::optional<double> parse_process_ticks(std::string_view stat, bool with_children);

class HostMonitor {
 public:
  struct Sample {
    double average = 0;
    CpuTicks cpu;
    double own = 0;  // ticks of this process and its children
  };
  using Source = std::function<std::optional<Sample>()>;
  HostMonitor();  // monitors this machine
  explicit HostMonitor(Source source);

  // Returns the load since the last call, or since the one before if the last one was only a moment
  // ago.
  HostLoad sample();
  // Returns a line for people the first time that the machine has been too busy for a while, else
  // an empty text. `slowdown` is the time of the same code relative to the start of the run.
  [[nodiscard]] std::string complaint(double slowdown);

 private:
  Source source_;
  std::optional<Sample> last_;
  HostLoad load_;
  int noisy_ = 0;  // noisy windows in a row
  int drifted_ = 0;
  bool told_ = false;
};
// Reads the load of this machine; nothing where the system does not say it.
[[nodiscard]] std::optional<HostMonitor::Sample> sample_machine();

}  // namespace hone::measure
