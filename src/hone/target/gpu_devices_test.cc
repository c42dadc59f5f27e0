#include "hone/target/gpu_devices.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "hone/target/gpu_table.h"
#include "hone/target/target.h"

namespace hone::target {
namespace {

runtime::DeviceProperties driver_of_a_gpu(int capability) {
  runtime::DeviceProperties p;
  p.kind = runtime::DeviceKind::kCuda;
  std::strcpy(p.name, "NVIDIA Something");
  p.capability = capability;
  p.compute_units = 132;
  p.clock_khz = 1'980'000;
  p.warp_threads = 32;
  p.max_block_threads = 1024;
  p.max_unit_threads = 2048;
  p.max_unit_blocks = 32;
  p.unit_registers = 65536;
  p.block_shared_bytes = 232448;
  p.unit_shared_bytes = 233472;
  p.memory_bytes = 85'028'634'624;  // 79.2 GiB of 80
  p.cache_bytes = 52428800;
  p.memory_clock_khz = 2'619'000;
  p.memory_bus_bits = 5120;
  return p;
}

double dense_flops(const Gpu& gpu, DType input, DType accumulator) {
  double rate = 0;
  for (const MatrixInstruction& m : gpu.matrix) {
    if (m.input == input && m.accumulator == accumulator) rate = std::max(rate, m.fma_per_cycle);
  }
  return 2 * rate * gpu.sms * gpu.ghz * 1e9;
}

TEST(gpu, descriptions_hold_together) {
  for (const auto& [name, gpu] : gpu_table()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(gpu.api == GpuApi::kCuda, name.starts_with("cuda-sm_"));
    EXPECT_EQ(gpu.api == GpuApi::kCuda, gpu.capability > 0);
    EXPECT_TRUE(name.starts_with(gpu.api == GpuApi::kCuda ? "cuda-" + gpu.arch : gpu.arch));
    EXPECT_GE(gpu.warps_per_sm * gpu.warp, gpu.threads_per_block);
    EXPECT_LE(gpu.shared_bytes, gpu.shared_bytes_opt_in);
    EXPECT_LE(gpu.shared_bytes_opt_in + gpu.shared_bytes_reserved, gpu.shared_bytes_per_sm);
    EXPECT_GT(gpu.memory_bandwidth, 0);
    EXPECT_GT(gpu.memory_bytes, gpu.l2_bytes);
    for (const MatrixInstruction& m : gpu.matrix) {
      EXPECT_GT(m.fma_per_cycle, 0);
      EXPECT_EQ(m.m % 8 + m.n % 8 + m.k % 4, 0);
      EXPECT_TRUE(!m.warp_group || (m.m == 64 && gpu.arch == "sm_90a"));
    }
    if (gpu.api == GpuApi::kOpenCl) {
      EXPECT_TRUE(gpu.matrix.empty() && !gpu.async_copy && !gpu.bulk_copy && gpu.cluster == 0);
    }
  }
}

// The data sheets' TFLOP/s in float32, and of matrices in half precision, tf32 and int8.
TEST(gpu, rates_are_those_of_the_data_sheets) {
  const struct {
    const char* name;
    double f32, half, tf32, i8;
  } sheets[] = {{"cuda-sm_80", 19.5, 312, 156, 624},
                {"cuda-sm_86", 35.6, 71, 35.6, 284},
                {"cuda-sm_89", 82.6, 165.2, 82.6, 660.6},
                {"cuda-sm_90a", 66.9, 989, 494.7, 1979},
                {"cuda-sm_120", 104.8, 209.5, 104.8, 838}};
  for (const auto& [name, f32, half, tf32, i8] : sheets) {
    SCOPED_TRACE(name);
    const Gpu gpu = *described_gpu(name);
    EXPECT_NEAR(2e-12 * gpu.fma_per_cycle * gpu.sms * gpu.ghz * 1e9, f32, 0.08 * f32);
    EXPECT_NEAR(1e-12 * dense_flops(gpu, DType::kBF16, DType::kF32), half, 0.02 * half);
    EXPECT_NEAR(1e-12 * dense_flops(gpu, DType::kF16, DType::kF32), half, 0.02 * half);
    EXPECT_NEAR(1e-12 * dense_flops(gpu, DType::kF32, DType::kF32), tf32, 0.02 * tf32);
    EXPECT_NEAR(1e-12 * dense_flops(gpu, DType::kI8, DType::kI32), i8, 0.02 * i8);
  }
}

TEST(gpu, keys_say_what_changes_speed_and_are_found_again) {
  EXPECT_EQ(device_key(*find("cuda-sm_90a")), "sm_90a-132sm-50M-80G");
  EXPECT_EQ(device_key(*find("cuda-sm_90a-h200")), "sm_90a-132sm-50M-144G");
  EXPECT_EQ(device_key(*find("cuda-sm_100")), "sm_100-148sm-129536K-184G");
  EXPECT_EQ(device_key(*find("opencl-pocl")), "opencl-pocl-4sm-32M-16G");
  std::set<std::string> keys;
  for (const std::string& name : described_gpus()) {
    const Target named = *find(name);
    EXPECT_TRUE(keys.insert(device_key(named)).second) << name;
    EXPECT_EQ(of_key(device_key(named))->name, name);
  }
  for (const char* key :
       {"sm_90a-114sm-50M-80G", "sm_89-58sm-48M-24G", "opencl-pocl-64sm-256M-128G",
        "opencl-amd-radeon-rx-7900-xtx-48sm-6M-24G", "sm_86-16sm-2M-4G"}) {
    const Result<Target> found = of_key(key);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(device_key(*found), key);
    EXPECT_EQ(found->kind(), Kind::kGpu);
    EXPECT_FALSE(runs_here(*found));
  }
  EXPECT_EQ(of_key("sm_90a-114sm-50M-144G")->gpu().memory_bandwidth,
            find("cuda-sm_90a-h200")->gpu().memory_bandwidth);
  for (const char* key : {"sm_90a", "sm_90a-132sm", "sm_90a-132sm-50M", "sm_90a-132sm-50M-80M",
                          "sm_90a-132c-50M-80G", "sm_90a-0sm-50M-80G", "sm_20-132sm-50M-80G",
                          "sm_90a-132sm-50M-99999999999G", "-132sm-50M-80G"}) {
    EXPECT_EQ(of_key(key).status().code(), Code::kUnsupported) << key;
  }
}

TEST(gpu, a_driver_s_numbers_take_the_place_of_the_described_ones) {
  const Gpu h100 = *gpu_of(driver_of_a_gpu(90));
  EXPECT_EQ(device_key(h100), "sm_90a-132sm-50M-80G");
  EXPECT_EQ(h100.warps_per_sm, 64);
  EXPECT_DOUBLE_EQ(h100.ghz, 1.98);
  EXPECT_DOUBLE_EQ(h100.memory_bandwidth, 3352.32e9);
  EXPECT_EQ(h100.shared_bytes, 48 << 10);
  EXPECT_EQ(h100.shared_bytes_opt_in, 227 << 10);
  EXPECT_EQ(h100.matrix.size(), described_gpu("cuda-sm_90a")->matrix.size());

  runtime::DeviceProperties silent;  // a driver that says nothing more
  silent.kind = runtime::DeviceKind::kCuda;
  silent.capability = 90;
  silent.memory_bytes = int64_t{140} << 30;
  const Gpu h200 = *gpu_of(silent);
  EXPECT_EQ(device_key(h200), device_key(*described_gpu("cuda-sm_90a-h200")));
  EXPECT_EQ(h200.memory_bandwidth, described_gpu("cuda-sm_90a-h200")->memory_bandwidth);
}

TEST(gpu, an_architecture_between_two_has_the_instructions_of_the_older_one) {
  const Gpu orin = *gpu_of(driver_of_a_gpu(87));
  EXPECT_EQ(orin.arch, "sm_87");
  EXPECT_EQ(orin.capability, 87);
  EXPECT_EQ(orin.matrix.size(), described_gpu("cuda-sm_86")->matrix.size());
  EXPECT_FALSE(orin.bulk_copy);
  EXPECT_EQ(gpu_of(driver_of_a_gpu(103))->arch, "sm_103");
  EXPECT_EQ(gpu_of(driver_of_a_gpu(120))->arch, "sm_120");
  for (const int capability : {87, 103, 121}) {
    const Gpu gpu = *gpu_of(driver_of_a_gpu(capability));
    const Result<Target> found = of_key(device_key(gpu));
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->kind(), Kind::kGpu);
    EXPECT_EQ(device_key(*found), device_key(gpu));
    EXPECT_EQ(found->gpu().capability, capability);
    EXPECT_EQ(found->gpu().matrix.size(), gpu.matrix.size());
  }
  const Result<Gpu> old = gpu_of(driver_of_a_gpu(75));
  EXPECT_EQ(old.status().code(), Code::kUnsupported);
  EXPECT_EQ(old.status().message(),
            "NVIDIA Something has compute capability 7.5, expected 8.0 or a newer one");
}

TEST(gpu, opencl_s_devices_are_generic_ones_but_for_what_the_driver_says) {
  runtime::DeviceProperties p;
  p.kind = runtime::DeviceKind::kOpenCl;
  std::strcpy(p.name, "Intel(R) Arc(TM) A770 Graphics");
  p.compute_units = 512;
  p.max_block_threads = 1024;
  p.block_shared_bytes = 64 << 10;
  p.memory_bytes = int64_t{15} << 30;
  p.cache_bytes = 16 << 20;
  p.has_half = p.has_subgroups = true;
  const Gpu arc = *gpu_of(p);
  EXPECT_EQ(device_key(arc), "opencl-intel-r-arc-tm-a770-graphics-512sm-16M-16G");
  EXPECT_EQ(arc.threads_per_block, 1024);
  EXPECT_EQ(arc.shared_bytes, 64 << 10);
  EXPECT_TRUE(arc.fp16 && arc.subgroups && !arc.fp64);
  EXPECT_EQ(device_key(*of_key(device_key(arc))), device_key(arc));
  EXPECT_FALSE(arc.is_cpu);
  std::strcpy(p.platform, "Portable Computing Language");
  p.is_cpu = true;
  EXPECT_EQ(gpu_of(p)->arch, "opencl-pocl");
  EXPECT_TRUE(gpu_of(p)->is_cpu && described_gpu("opencl-pocl")->is_cpu);
  EXPECT_EQ(gpu_of(p)->warp, described_gpu("opencl-pocl")->warp);
}

// Whether there is a driver depends on the machine; that there is an answer does not.
TEST(gpu, the_one_at_hand_is_described_or_the_error_says_what_is_missing) {
  for (const char* name : {"cuda", "opencl"}) {
    const Result<Target> found = find(name);
    if (found.ok()) {
      EXPECT_EQ(found->name, name);
      EXPECT_EQ(found->gpu().api,
                std::string_view(name) == "cuda" ? GpuApi::kCuda : GpuApi::kOpenCl);
      EXPECT_EQ(device_key(*of_key(device_key(*found))), device_key(*found));
      EXPECT_GT(found->gpu().threads_per_block, 0);
    } else {
      EXPECT_EQ(found.status().code(), Code::kUnsupported);
      EXPECT_TRUE(
          found.status().message().starts_with(fmt::format("there is no device {}: ", name)))
          << found.status().message();
      EXPECT_GT(found.status().message().size(), 40U);
    }
  }
}

TEST(gpu, description_has_one_line_per_property) {
  const std::string text = describe(*find("cuda-sm_90a"));
  for (const char* line :
       {"name: cuda-sm_90a\n", "key: sm_90a-132sm-50M-80G\n", "interface: CUDA\n",
        "compute capability: 9.0\n", "processors: 132 SMs at 1.83 GHz, 128 FMA per cycle\n",
        "matrix instruction: 16x8x8, tf32 to f32, 645 FMA per cycle and SM\n",
        "matrix instruction: 64x256x16, bf16 to f32, 2048 FMA per cycle and SM, of four warps\n",
        "bulk copies: yes\n", "clusters: 8 blocks\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  EXPECT_EQ(describe(*find("opencl-generic")).find("compute capability"), std::string::npos);
}

TEST(gpu, the_part_of_another_kind_is_a_bug) {
  const Target gpu = *find("cuda-sm_80"), cpu = *find("x86-64-avx2");
  EXPECT_EQ(gpu.kind(), Kind::kGpu);
  EXPECT_EQ(cpu.kind(), Kind::kCpu);
  EXPECT_DEATH((void)gpu.cpu(), "described as one of another kind");
  EXPECT_DEATH((void)cpu.gpu(), "described as one of another kind");
}

}  // namespace
}  // namespace hone::target
