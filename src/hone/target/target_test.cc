#include "hone/target/target.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "hone/target/arm_id.h"
#include "hone/target/cgroup.h"
#include "hone/target/cpuid.h"
#include "hone/target/machine_table.h"

namespace hone::target {
namespace {

CpuId with(std::string vendor, int family, int model, std::initializer_list<const char*> extra) {
  CpuId id{.vendor = std::move(vendor), .family = family, .model = model};
  for (const char* f : {"sse4.2", "popcnt", "cx16", "avx", "avx2", "fma", "bmi", "bmi2", "lzcnt",
                        "f16c", "movbe"}) {
    id.features.insert(f);
  }
  for (const char* f : extra) id.features.insert(f);
  return id;
}
#define V4 "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "adx", "clflushopt"

TEST(cpu_name, of_an_arm_core_follows_its_part_number) {
  EXPECT_EQ(arm_cpu(0x410fd083), "cortex-a72");   // Raspberry Pi 4
  EXPECT_EQ(arm_cpu(0x414fd0b1), "cortex-a76");   // Raspberry Pi 5
  EXPECT_EQ(arm_cpu(0x413fd0c1), "neoverse-n1");  // Graviton 2
  EXPECT_EQ(arm_cpu(0x480fd010), "generic");      // another maker's part
  EXPECT_EQ(arm_cpu(0), "generic");
  for (const char* name : {"cortex-a76", "cortex-a53", "generic"})
    EXPECT_STREQ(machine_numbers(name).cpu, name);
}

TEST(cpu_name, follows_the_model_where_features_agree) {
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0x3c, {})), "haswell");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0x4f, {"adx"})), "broadwell");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0x5e, {"adx", "clflushopt"})), "skylake");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0xa7, {V4, "avx512vnni", "avx512vbmi2", "gfni"})),
            "rocketlake");
  EXPECT_EQ(llvm_cpu(with("AuthenticAMD", 0x17, 0x01, {"adx", "clflushopt"})), "znver1");
}

TEST(cpu_name, features_win_over_a_model_number_that_cannot_have_them) {
  EXPECT_EQ(llvm_cpu(with(
                "GenuineIntel", 6, 167,
                {V4, "avx512vnni", "avx512vbmi2", "gfni", "avx512bf16", "avx512fp16", "amx-bf16"})),
            "sapphirerapids");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0x3c, {V4})), "skylake-avx512");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0x55, {V4, "avx512vnni"})), "cascadelake");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0x6a, {V4, "avx512vnni", "avx512vbmi2", "gfni"})),
            "icelake-server");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0xad,
                          {V4, "avx512vnni", "avx512vbmi2", "avx512fp16", "amx-bf16", "amx-fp16"})),
            "graniterapids");
  EXPECT_EQ(llvm_cpu(with("AuthenticAMD", 0x19, 0x11, {V4, "avx512vnni", "vaes"})), "znver4");
  EXPECT_EQ(llvm_cpu(with("AuthenticAMD", 0x1a, 0x02, {V4, "avx512vnni", "avxvnni"})), "znver5");
  EXPECT_EQ(llvm_cpu(with("AuthenticAMD", 0x19, 0x21, {"clwb", "vaes"})), "znver3");
  EXPECT_EQ(llvm_cpu(with("AuthenticAMD", 0x17, 0x71, {"clwb"})), "znver2");
}

TEST(cpu_name, falls_back_to_an_isa_level) {
  EXPECT_EQ(llvm_cpu(with("CentaurHauls", 7, 1, {V4})), "x86-64-v4");
  EXPECT_EQ(llvm_cpu(with("CentaurHauls", 7, 1, {})), "x86-64-v3");
  EXPECT_EQ(llvm_cpu(with("GenuineIntel", 6, 0x57, {"avx512f", "avx512cd"})), "x86-64-v3");
  CpuId old{.vendor = "GenuineIntel",
            .family = 6,
            .model = 0x2a,
            .features = {"sse4.2", "popcnt", "cx16"}};
  EXPECT_EQ(llvm_cpu(old), "x86-64-v2");
  EXPECT_EQ(llvm_cpu(CpuId{}), "generic");
}

TEST(cpu_features, carry_both_signs_and_never_amx) {
  const auto features = llvm_features(with("GenuineIntel", 6, 167, {V4, "amx-bf16"}));
  const auto contains = [&](const char* f) {
    return std::find(features.begin(), features.end(), f) != features.end();
  };
  EXPECT_TRUE(contains("+avx512f"));
  EXPECT_TRUE(contains("-avx512fp16"));
  EXPECT_TRUE(contains("-prefer-256-bit"));
  EXPECT_FALSE(contains("+amx-bf16"));
}

class CgroupTree {
 public:
  CgroupTree() : root_(testing::TempDir() + "hone_cgroup_" + std::to_string(getpid())) {}
  ~CgroupTree() { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_;
};

TEST(cgroup, version_2_takes_the_least_of_the_group_and_its_parents) {
  const CgroupTree tree;
  tree.write("/proc/self/cgroup", "0::/a/b\n");
  tree.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(cgroup_cpu_quota(tree.root()).has_value());
  tree.write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(tree.root()), 2.5);
  tree.write("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(tree.root()), 0.5);
}

TEST(cgroup, version_1_reads_the_cpu_controller_only) {
  const CgroupTree tree;
  tree.write("/proc/self/cgroup", "3:cpuset:/x\n2:cpu,cpuacct:/docker/q\n0::/\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/docker/q/cpu.cfs_quota_us", "300000\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/docker/q/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(tree.root()), 3.0);
  tree.write("/sys/fs/cgroup/cpu,cpuacct/docker/q/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(cgroup_cpu_quota(tree.root()).has_value());
}

TEST(cgroup, no_files_mean_no_limit) {
  EXPECT_FALSE(cgroup_cpu_quota("/nonexistent").has_value());
  EXPECT_EQ(usable_cores(8, std::nullopt), 8);
  EXPECT_EQ(usable_cores(8, 2.5), 2);
  EXPECT_EQ(usable_cores(8, 0.5), 1);
  EXPECT_EQ(usable_cores(2, 16.0), 2);
  EXPECT_EQ(usable_cores(2, 1e18), 2);
  EXPECT_EQ(usable_cores(2, std::numeric_limits<double>::infinity()), 2);
  EXPECT_EQ(usable_cores(2, std::numeric_limits<double>::quiet_NaN()), 2);
}

TEST(cgroup, what_is_no_number_is_no_limit) {
  const CgroupTree tree;
  tree.write("/proc/self/cgroup", "0::/a\n");
  tree.write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  for (const char* text : {"nan 100000\n", "inf 100000\n", "100000 nan\n", "some 100000\n", "\n"}) {
    tree.write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(cgroup_cpu_quota(tree.root()), 2.0) << text;
  }
}

TEST(target, host_is_complete_and_stable) {
  const Target& t = host();
  EXPECT_EQ(t.name, "host");
  EXPECT_GE(t.cpu().cores, 1);
  EXPECT_LE(t.cpu().cores, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_GE(t.cpu().vector_bytes, 16);
  EXPECT_GT(t.cpu().ghz, 0.5);
  ASSERT_FALSE(t.cpu().caches.empty());
  for (size_t i = 0; i < t.cpu().caches.size(); ++i) {
    EXPECT_EQ(t.cpu().caches[i].level, static_cast<int>(i) + 1);
    EXPECT_GE(t.cpu().caches[i].shared_by, 1);
    if (i > 0) {
      EXPECT_GT(t.cpu().caches[i].bytes, t.cpu().caches[i - 1].bytes);
    }
  }
  EXPECT_EQ(&t, &host());
}

TEST(target, host_agrees_with_the_compiler_about_the_instruction_set) {
#if defined(__x86_64__)
  const CpuId id = read_cpuid();
  EXPECT_EQ(id.has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(id.has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(id.has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(id.has("avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
#else
  EXPECT_TRUE(read_cpuid().vendor.empty());
#endif
}

TEST(target, names_are_found_and_an_unknown_one_lists_them) {
  for (const std::string& name : names()) {
    const auto t = find(name);
    if (name == "cuda" || name == "opencl") continue;  // see gpu_devices_test.cc
    ASSERT_TRUE(t.ok()) << name;
    EXPECT_EQ(t->name, name);
    if (t->kind() == Kind::kCpu) {
      EXPECT_GE(t->cpu().caches.size(), 2U) << name;
    }
  }
  const auto missing = find("pdp-11");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find("x86-64-avx512, aarch64-neon"), std::string::npos);
}

TEST(target, the_host_limited_to_avx2_has_its_caches_and_a_key_of_its_own) {
  const Target limited = *find("host-avx2"), machine = host();
  EXPECT_EQ(limited.cpu().vector_bytes, 32);
  EXPECT_FALSE(limited.cpu().masked_memory);
  EXPECT_NE(device_key(limited), device_key(machine));
  EXPECT_TRUE(runs_here(machine));
  EXPECT_FALSE(runs_here(*find("x86-64-avx2")));
  EXPECT_FALSE(runs_here(*find("aarch64-neon")));
  if (std::ranges::find(machine.cpu().features, "+avx2") == machine.cpu().features.end()) {
    EXPECT_FALSE(runs_here(limited));
    return;
  }
  EXPECT_TRUE(runs_here(limited));
  EXPECT_EQ(limited.cpu().cores, machine.cpu().cores);
  ASSERT_EQ(limited.cpu().caches.size(), machine.cpu().caches.size());
  EXPECT_EQ(limited.cpu().caches[0].bytes, machine.cpu().caches[0].bytes);
}

TEST(target, device_key_names_what_changes_speed) {
  Target t = *find("x86-64-avx512");
  EXPECT_EQ(device_key(t), "avx512-x86-64-v4-4c-32K-1M-32M");
  t.name = "other";
  t.cpu().ghz = 5;
  EXPECT_EQ(device_key(t), "avx512-x86-64-v4-4c-32K-1M-32M");
  t.cpu().cores = 8;
  EXPECT_EQ(device_key(t), "avx512-x86-64-v4-8c-32K-1M-32M");
  EXPECT_EQ(device_key(*find("aarch64-neon")), "neon-neoverse-n1-4c-64K-1M-32M");
}

TEST(target, a_key_tells_the_device_of_another_machine) {
  for (const char* name : {"host", "host-avx2", "x86-64-avx2", "x86-64-avx512", "aarch64-neon"}) {
    const Target named = *find(name);
    const Result<Target> found = of_key(device_key(named));
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ(device_key(*found), device_key(named));
    EXPECT_EQ(found->cpu().ghz, named.cpu().ghz) << "all that a named one says";
  }
  for (const char* key : {"avx512-znver4-12c-32K-1M-96M", "avx512-skylake-avx512-3c-32K-1M-25344K",
                          "avx2-x86-64-v3-7c-48K-2M", "neon-neoverse-n1-80c-64K-1M-32M",
                          "avx2-broadwell-4c-32K-256K-6M-128M"}) {
    const Result<Target> found = of_key(key);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(device_key(*found), key);
    EXPECT_FALSE(found->cpu().features.empty());
    EXPECT_FALSE(runs_here(*found));
    for (const Cache& cache : found->cpu().caches) EXPECT_LE(cache.shared_by, found->cpu().cores);
  }
  const Target zen = *of_key("avx512-znver4-12c-32K-1M-96M");
  EXPECT_EQ(zen.cpu().fma_per_cycle, 1);
  EXPECT_EQ(zen.cpu().vector_bytes, 64);
  EXPECT_EQ(zen.cpu().caches[2].bytes, 96 << 20);
  for (const char* key :
       {"", "-", "host", "avx512", "avx512-znver4", "avx512-znver4-12c-32K-1M-96", "12c-32K",
        "avx512-znver4--12c-32K-1M-32M", "avx512-abacus-2c-32K-1M-32M", "avx2-znver4-2c-32K-1M-32M",
        "avx512-znver4-0c-32K-1M-32M", "avx512-znver4-2d-32K-1M-32M",
        "avx512-znver4-99999999999c-32K-1M-32M", "avx512-znver4-2c-32K-1M-99999999999999999999M"}) {
    EXPECT_EQ(of_key(key).status().code(), Code::kUnsupported) << key;
  }
}

TEST(target, lanes_follow_the_vector_width) {
  EXPECT_EQ(find("x86-64-avx2")->cpu().lanes(4), 8);
  EXPECT_EQ(find("x86-64-avx512")->cpu().lanes(4), 16);
  EXPECT_EQ(find("aarch64-neon")->cpu().lanes(4), 4);
  EXPECT_EQ(machine_numbers("znver4").fma_per_cycle, 1);
  EXPECT_STREQ(machine_numbers("no such cpu").cpu, "x86-64-v3");
}

TEST(target, description_has_one_line_per_property) {
  const std::string text = describe(*find("x86-64-avx2"));
  EXPECT_NE(text.find("cpu: x86-64-v3\n"), std::string::npos);
  EXPECT_NE(text.find("L1: 32768 bytes"), std::string::npos);
}

}  // namespace
}  // namespace hone::target
