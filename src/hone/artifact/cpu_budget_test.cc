#include "hone/runtime/cpu_budget.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <string>

#include "hone/artifact/artifact_testing.h"
#include "hone/runtime/cpu_features.h"

namespace hone::runtime {
namespace {

// A machine's /proc and /sys, as files of a test.
class FakeRoot {
 public:
  FakeRoot& file(const std::string& path, const std::string& text) {
    const std::filesystem::path full = folder_.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
    return *this;
  }
  [[nodiscard]] int quota() const { return quota_cpus(folder_.path().c_str()); }

 private:
  artifact::testing::Folder folder_;
};

TEST(cpu_budget, without_cgroups_has_no_quota) {
  EXPECT_EQ(FakeRoot().quota(), 0);
  EXPECT_EQ(FakeRoot().file("/proc/self/cgroup", "").quota(), 0);
  EXPECT_EQ(FakeRoot().file("/proc/self/cgroup", "nonsense\n0::\n::\n").quota(), 0);
}

TEST(cpu_budget, reads_version_2) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/user/app\n");
  EXPECT_EQ(root.quota(), 0);
  root.file("/sys/fs/cgroup/user/app/cpu.max", "max 100000\n");
  EXPECT_EQ(root.quota(), 0);
  root.file("/sys/fs/cgroup/user/app/cpu.max", "400000 100000\n");
  EXPECT_EQ(root.quota(), 4);
}

TEST(cpu_budget, takes_the_strictest_ancestor) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/user/app\n");
  root.file("/sys/fs/cgroup/user/app/cpu.max", "800000 100000\n");
  root.file("/sys/fs/cgroup/user/cpu.max", "300000 100000\n");
  EXPECT_EQ(root.quota(), 3);
  root.file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(root.quota(), 2);
}

TEST(cpu_budget, rounds_a_quota_down_but_not_to_nothing) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/\n");
  root.file("/sys/fs/cgroup/cpu.max", "199999 100000\n");
  EXPECT_EQ(root.quota(), 1);
  root.file("/sys/fs/cgroup/cpu.max", "5000 100000\n");
  EXPECT_EQ(root.quota(), 1);
  root.file("/sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(root.quota(), 0);
}

TEST(cpu_budget, reads_version_1) {
  for (const std::string mount : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
    FakeRoot root;
    root.file("/proc/self/cgroup", "3:cpuset:/docker/x\n2:" + mount + ":/docker/x\n0::/\n");
    const std::string folder = "/sys/fs/cgroup/" + mount + "/docker/x/";
    root.file(folder + "cpu.cfs_period_us", "50000\n");
    root.file(folder + "cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(root.quota(), 0) << mount;
    root.file(folder + "cpu.cfs_quota_us", "150000\n");
    EXPECT_EQ(root.quota(), 3) << mount;
  }
}

TEST(cpu_budget, finds_a_container_whose_group_is_not_mounted) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "4:cpu:/docker/0123abc\n");
  root.file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(root.quota(), 2);
}

TEST(cpu_budget, other_controllers_do_not_count) {
  FakeRoot root;
  root.file("/proc/self/cgroup", "3:cpuset:/a\n4:cpuacct:/a\n");
  root.file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  root.file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(root.quota(), 0);
}

TEST(cpu_budget, follows_the_affinity_mask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(affinity_cpus(), CPU_COUNT(&before));
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), affinity_cpus());
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(affinity_cpus(), 1);
  EXPECT_EQ(usable_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(cpu_features, agree_with_the_system) {
  EXPECT_EQ(cpu_feature("no-such-feature"), FeatureState::kUnknown);
  EXPECT_EQ(cpu_feature(""), FeatureState::kUnknown);
#if defined(__x86_64__)
  const std::string info = artifact::testing::read_file("/proc/cpuinfo");
  const size_t start = info.find("\nflags");
  ASSERT_NE(start, std::string::npos);
  const std::string flags = info.substr(start, info.find('\n', start + 1) - start) + " ";
  // Linux's name, LLVM's name.
  const std::pair<const char*, const char*> names[] = {
      {"avx", "avx"},           {"avx2", "avx2"},         {"fma", "fma"},
      {"avx512f", "avx512f"},   {"avx512bw", "avx512bw"}, {"avx512dq", "avx512dq"},
      {"avx512vl", "avx512vl"}, {"avx512cd", "avx512cd"}, {"f16c", "f16c"},
      {"bmi1", "bmi"},          {"bmi2", "bmi2"},         {"abm", "lzcnt"},
      {"sse4_2", "sse4.2"},     {"popcnt", "popcnt"},     {"amx_tile", "amx-tile"},
      {"sse4a", "sse4a"},       {"avx_vnni", "avxvnni"},  {"avx512_bf16", "avx512bf16"},
  };
  for (const auto& [theirs, ours] : names) {
    const bool expected = flags.find(" " + std::string(theirs) + " ") != std::string::npos;
    EXPECT_EQ(cpu_feature(ours) == FeatureState::kPresent, expected) << ours;
  }
#endif
}

}  // namespace
}  // namespace hone::runtime
