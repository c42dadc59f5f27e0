// measure/host_load.h - what else happens on this machine while candidates are timed: the share of
// its cores that other programs use, and what the host of a virtual machine takes away (Linux:
// /proc). Says once that times are in doubt.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hone::measure {

struct HostLoad {
  double average = 0;  // 1-minute load average
  double others = 0;   // share of all cores, 0 to 1, that other programs used
  double steal = 0;    // ... that the host of this virtual machine kept
};

// Ticks of all cores since the start of the machine.
struct CpuTicks {
  double total = 0, idle = 0, steal = 0;
};
// The first line of /proc/stat.
[[nodiscard]] std::optional<CpuTicks> parse_cpu_ticks(std::string_view stat);
// /proc/PID/stat: ticks of a process and, `with_children`, of those of its children that have
// ended.
[[nodiscard]] std::optional<double> parse_process_ticks(std::string_view stat, bool with_children);

class HostMonitor {
 public:
  struct Sample {
    double average = 0;
    CpuTicks cpu;
    double own = 0;  // ticks of this process and its children
  };
  using Source = std::function<std::optional<Sample>()>;
  HostMonitor();  // this machine
  explicit HostMonitor(Source source);

  // Over the time since the last call, or the one before if that was only a moment ago.
  HostLoad sample();
  // `slowdown`: of the same code since the start of the run. A line for people, the first time that
  // the machine has been too busy for a while; empty otherwise.
  [[nodiscard]] std::string complaint(double slowdown);

 private:
  Source source_;
  std::optional<Sample> last_;
  HostLoad load_;
  int noisy_ = 0;  // windows in a row
  int drifted_ = 0;
  bool told_ = false;
};

}  // namespace hone::measure
