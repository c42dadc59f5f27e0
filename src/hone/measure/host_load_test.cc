#include "hone/measure/host_load.h"

#include <gtest/gtest.h>

namespace hone::measure {
namespace {

TEST(host_load, reads_what_the_kernel_writes) {
  const auto cpu = parse_cpu_ticks("cpu  100 20 30 400 50 1 2 7 99 99\ncpu0 1 2 3\n");
  ASSERT_TRUE(cpu.has_value());
  EXPECT_EQ(cpu->total, 610);
  EXPECT_EQ(cpu->idle, 450);
  EXPECT_EQ(cpu->steal, 7);
  const char* process = "17 (a ) name) S 1 2 3 4 5 6 7 8 9 10 40 2 300 4000 20 0\n";
  EXPECT_EQ(parse_process_ticks(process, false), 42);
  EXPECT_EQ(parse_process_ticks(process, true), 4342);
  for (const char* nonsense : {"", "cpu", "cpu 1 2 3 4 5 6 7", "mem 1 2 3 4 5 6 7 8", "cpu a b"})
    EXPECT_FALSE(parse_cpu_ticks(nonsense).has_value()) << nonsense;
  for (const char* nonsense : {"", "1 (x", "1 (x) S 1 2"})
    EXPECT_FALSE(parse_process_ticks(nonsense, true).has_value()) << nonsense;
}

TEST(host_load, this_machine_has_one) {
  HostMonitor monitor;
  const HostLoad load = monitor.sample();
  EXPECT_GE(load.average, 0);
  EXPECT_LE(load.others + load.steal, 2);
}

// Two cores; each step is a second, in which this program takes one of them.
struct Machine {
  HostMonitor::Sample now;
  double others = 0, steal = 0;  // cores
  HostMonitor monitor{[this] { return now; }};
  HostLoad step() {
    now.cpu.total += 200, now.own += 100;
    now.cpu.idle += 100 * (1 - others - steal), now.cpu.steal += 100 * steal;
    return monitor.sample();
  }
};

TEST(host_load, tells_others_from_this_program) {
  Machine machine;
  machine.others = 0.5, machine.steal = 0.25;
  const HostLoad load = machine.step();
  EXPECT_DOUBLE_EQ(load.others, 0.25);
  EXPECT_DOUBLE_EQ(load.steal, 0.125);
  machine.now.cpu.total += 10;  // a moment: too short to say anything
  EXPECT_DOUBLE_EQ(machine.monitor.sample().others, 0.25);
}

TEST(host_load, complains_once_and_only_of_what_lasts) {
  Machine machine;
  const auto complaint_after = [&](int steps, double others, double steal) {
    std::string said;
    machine.others = others, machine.steal = steal;
    for (int i = 0; i < steps; ++i) machine.step(), said += machine.monitor.complaint(1);
    return said;
  };
  EXPECT_EQ(complaint_after(20, 0.1, 0), "");
  EXPECT_EQ(complaint_after(3, 0.9, 0), "");
  EXPECT_EQ(complaint_after(1, 0, 0), "");
  const std::string said = complaint_after(20, 0.5, 0);
  EXPECT_EQ(said.find("other programs use 25% of this machine's cores: "), 0U) << said;
  EXPECT_EQ(said.rfind("other programs"), 0U) << "said twice";
  EXPECT_EQ(complaint_after(20, 0, 0.5), "") << "once is enough";
}

TEST(host_load, complains_of_steal_and_of_a_drift) {
  Machine stolen;
  std::string said;
  stolen.steal = 0.2;
  for (int i = 0; i < 5; ++i) stolen.step(), said += stolen.monitor.complaint(1);
  EXPECT_EQ(said.find("the host of this virtual machine takes 10% of its cores away: "), 0U);
  Machine hot;
  said.clear();
  for (int i = 0; i < 5; ++i) hot.step(), said += hot.monitor.complaint(1.3);
  EXPECT_EQ(said.find("this machine became 30% slower while it measures: "), 0U) << said;
}

TEST(host_load, a_machine_without_proc_is_quiet) {
  HostMonitor monitor([] { return std::optional<HostMonitor::Sample>(); });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(monitor.sample().others, 0);
  EXPECT_EQ(monitor.complaint(1), "");
}

}  // namespace
}  // namespace hone::measure
