#include "hone/target/gpu_table.h"

namespace hone::target {
namespace {

constexpr int64_t kKi = 1 << 10, kMi = 1 << 20, kGi = 1 << 30;

// Sources that several devices have in common:
// - Warps, blocks, registers and shared memory of an SM, and multiply-adds per cycle: NVIDIA, "CUDA
//   Programming Guide", tables "Technical Specifications per Compute Capability" and "Throughput of
//   Native Arithmetic Instructions". NVIDIA/cccl, libcudacxx/include/cuda/__device/arch_traits.h,
//   has the same limits as numbers, for each architecture here.
// - Shapes of matrix instructions: NVIDIA, "PTX ISA", sections "mma" and "wgmma".
// - Rates of matrix instructions: the dense peak rate of the data sheet / 2 / SMs / clock.
// - 128 bytes per cycle and SM from shared memory: 32 banks of 4 bytes.

using enum DType;

// Instructions of a warp (mma.sync) at these rates; 0 for those that the device executes no faster
// than separate multiply-adds. `half` is the rate with sums in half precision.
std::vector<MatrixInstruction> warp_products(double tf32, double bf16, double half, double i8,
                                             double f64) {
  std::vector<MatrixInstruction> all = {
      {16, 8, 8, kF32, kF32, tf32},  {16, 8, 16, kBF16, kF32, bf16}, {16, 8, 16, kF16, kF32, bf16},
      {16, 8, 16, kF16, kF16, half}, {16, 8, 32, kI8, kI32, i8},     {8, 8, 4, kF64, kF64, f64},
  };
  std::erase_if(all, [](const MatrixInstruction& m) { return m.fma_per_cycle == 0; });
  return all;
}

// What all devices of CUDA have that the passes and rules know.
Gpu cuda(const char* arch, int capability) {
  Gpu gpu;
  gpu.arch = arch;
  gpu.capability = capability;
  gpu.blocks_per_sm = 32;
  gpu.shared_bytes_reserved = kKi;
  gpu.async_copy = gpu.fp16 = gpu.fp64 = gpu.subgroups = true;
  return gpu;
}

// A100 SXM, 80 GB. NVIDIA, "A100 Tensor Core GPU Architecture" and data sheet: 108 SMs at 1.41 GHz,
// 312 TFLOP/s in half precision, 156 in tf32, 624 TOP/s, 19.5 TFLOP/s in double precision, 40 MB of
// L2 that reads 5120 bytes per cycle, 2039 GB/s. The driver keeps about 1 of the 80 GiB, as it does
// on an H100.
Gpu sm_80() {
  Gpu gpu = cuda("sm_80", 80);
  gpu.sms = 108;
  gpu.warps_per_sm = 64;
  gpu.shared_bytes_opt_in = 163 * kKi;
  gpu.shared_bytes_per_sm = 164 * kKi;
  gpu.l2_bytes = 40 * kMi;
  gpu.l2_bytes_per_cycle = 47;
  gpu.memory_bandwidth = 2039e9;
  gpu.memory_bytes = 79 * kGi;
  gpu.ghz = 1.41;
  gpu.matrix = warp_products(512, 1024, 1024, 2048, 64);
  return gpu;
}

// GeForce RTX 3090. NVIDIA, "Ampere GA102 GPU Architecture": 82 SMs at 1.695 GHz, with sums in
// single precision 71 TFLOP/s, in half precision 142, 35.6 in tf32, 284 TOP/s, 6 MB of L2, 936
// GB/s. The bandwidth of L2 is an estimate.
Gpu sm_86() {
  Gpu gpu = cuda("sm_86", 86);
  gpu.sms = 82;
  gpu.warps_per_sm = 48;
  gpu.blocks_per_sm = 16;
  gpu.shared_bytes_opt_in = 99 * kKi;
  gpu.shared_bytes_per_sm = 100 * kKi;
  gpu.l2_bytes = 6 * kMi;
  gpu.l2_bytes_per_cycle = 32;
  gpu.memory_bandwidth = 936e9;
  gpu.memory_bytes = 24 * kGi;
  gpu.ghz = 1.695;
  gpu.fma_per_cycle = 128;
  gpu.matrix = warp_products(128, 256, 512, 1024, 0);
  return gpu;
}

// GeForce RTX 4090. NVIDIA, "Ada GPU Architecture": 128 SMs at 2.52 GHz, with sums in single
// precision 165 TFLOP/s, in half precision 330, 82.6 in tf32, 661 TOP/s, 72 MB of L2, 1008 GB/s.
// The bandwidth of L2 is an estimate.
Gpu sm_89() {
  Gpu gpu = cuda("sm_89", 89);
  gpu.sms = 128;
  gpu.warps_per_sm = 48;
  gpu.blocks_per_sm = 24;
  gpu.shared_bytes_opt_in = 99 * kKi;
  gpu.shared_bytes_per_sm = 100 * kKi;
  gpu.l2_bytes = 72 * kMi;
  gpu.l2_bytes_per_cycle = 32;
  gpu.memory_bandwidth = 1008e9;
  gpu.memory_bytes = 24 * kGi;
  gpu.ghz = 2.52;
  gpu.fma_per_cycle = 128;
  gpu.matrix = warp_products(128, 256, 512, 1024, 0);
  return gpu;
}

// H100 SXM. NVIDIA, "H100 Tensor Core GPU Architecture" and data sheet: 132 SMs at 1.83 GHz, 989
// TFLOP/s in half precision, 494.7 in tf32, 1979 TOP/s, 50 MB of L2, 3.35 TB/s (5120 bits at 2619
// MHz). These are rates of wgmma; mma.sync reaches 63 to 65 % of them (arXiv 2501.12084). The data
// sheet's 67 TFLOP/s in single precision, and in double precision by matrix instructions, are 128
// multiply-adds per cycle and SM at the highest clock, 1.98 GHz.
// What L2 reads, 46 bytes per cycle and SM, is the limit in deepseek-ai/DeepGEMM,
// csrc/jit_kernels/heuristics/sm90.hpp. Clusters of 8 blocks are portable.
Gpu sm_90a() {
  constexpr double kWarpShare = 0.63;
  Gpu gpu = cuda("sm_90a", 90);
  gpu.sms = 132;
  gpu.warps_per_sm = 64;
  gpu.shared_bytes_opt_in = 227 * kKi;
  gpu.shared_bytes_per_sm = 228 * kKi;
  gpu.l2_bytes = 50 * kMi;
  gpu.l2_bytes_per_cycle = 46;
  gpu.memory_bandwidth = 3352e9;
  gpu.memory_bytes = 79 * kGi;
  gpu.ghz = 1.83;
  gpu.fma_per_cycle = 128;
  gpu.matrix = warp_products(kWarpShare * 1024, kWarpShare * 2048, kWarpShare * 2048,
                             kWarpShare * 4096, 128);
  const MatrixInstruction groups[] = {{64, 256, 8, kF32, kF32, 1024, true},
                                      {64, 256, 16, kBF16, kF32, 2048, true},
                                      {64, 256, 16, kF16, kF32, 2048, true},
                                      {64, 256, 16, kF16, kF16, 2048, true},
                                      {64, 256, 32, kI8, kI32, 4096, true}};
  gpu.matrix.insert(gpu.matrix.end(), std::begin(groups), std::end(groups));
  gpu.bulk_copy = true;
  gpu.cluster = 8;
  return gpu;
}

// H200 SXM: an H100 with other memory. NVIDIA's data sheet: 141 GB, 4.8 TB/s; the rates are the
// same.
Gpu h200() {
  Gpu gpu = sm_90a();
  gpu.memory_bandwidth = 4800e9;
  gpu.memory_bytes = 139 * kGi;
  return gpu;
}

// B200. What its driver says (pytorch/ao, pull request 4002): 148 SMs, 126.5 MB of L2, 178 GiB
// behind 7680 bits at 3996 MHz. At 1.85 GHz, 4096 multiply-adds per cycle and SM are the 2.25
// PFLOP/s in half precision of NVIDIA's data sheet. These are rates of tcgen05, whose sums lie in a
// memory of their own, which is not described; the rates of mma.sync are an estimate, those of an
// A100, and what L2 reads is that of an H100. Clusters: NVIDIA, "Blackwell Tuning Guide".
Gpu sm_100() {
  Gpu gpu = cuda("sm_100", 100);
  gpu.sms = 148;
  gpu.warps_per_sm = 64;
  gpu.shared_bytes_opt_in = 227 * kKi;
  gpu.shared_bytes_per_sm = 228 * kKi;
  gpu.l2_bytes = 126 * kMi + 512 * kKi;
  gpu.l2_bytes_per_cycle = 46;
  gpu.memory_bandwidth = 7672e9;
  gpu.memory_bytes = 178 * kGi;
  gpu.ghz = 1.85;
  gpu.fma_per_cycle = 128;
  gpu.matrix = warp_products(512, 1024, 1024, 2048, 64);
  gpu.bulk_copy = true;
  gpu.cluster = 8;
  return gpu;
}

// GeForce RTX 5090. NVIDIA, "RTX Blackwell GPU Architecture": 170 SMs at 2.407 GHz, with sums in
// single precision 209.5 TFLOP/s, in half precision 419, 104.8 in tf32, 838 TOP/s, 96 MB of L2,
// 1792 GB/s. The bandwidth of L2 is an estimate. Clusters: NVIDIA, "Blackwell Tuning Guide", which
// says 32 blocks on an SM where the Programming Guide, cccl and the driver say 24.
Gpu sm_120() {
  Gpu gpu = cuda("sm_120", 120);
  gpu.sms = 170;
  gpu.warps_per_sm = 48;
  gpu.blocks_per_sm = 24;
  gpu.shared_bytes_opt_in = 99 * kKi;
  gpu.shared_bytes_per_sm = 100 * kKi;
  gpu.l2_bytes = 96 * kMi;
  gpu.l2_bytes_per_cycle = 32;
  gpu.memory_bandwidth = 1792e9;
  gpu.memory_bytes = 32 * kGi;
  gpu.ghz = 2.407;
  gpu.fma_per_cycle = 128;
  gpu.matrix = warp_products(128, 256, 512, 1024, 0);
  gpu.bulk_copy = true;
  gpu.cluster = 8;
  return gpu;
}

// What code for any GPU with OpenCL may count on: 32 KiB of local memory are the least of a full
// profile (Khronos, "The OpenCL Specification" 1.2, table 4.3), and blocks of 256 threads run on
// the GPUs of all makers. The other numbers are estimates of a small GPU.
Gpu opencl_generic() {
  Gpu gpu;
  gpu.api = GpuApi::kOpenCl;
  gpu.arch = "opencl-generic";
  gpu.sms = 16;
  gpu.threads_per_block = 256;
  gpu.registers_per_sm = 0;
  gpu.shared_bytes = gpu.shared_bytes_opt_in = 32 * kKi;
  gpu.shared_bytes_per_sm = 64 * kKi;
  gpu.l2_bytes = kMi;
  gpu.memory_bandwidth = 100e9;
  gpu.memory_bytes = 4 * kGi;
  return gpu;
}

// PoCL on four cores with AVX2. PoCL 3.1 says: blocks of at most 4096 threads, of which programs
// use 1024 as on every other device, a preferred multiple of 8, no subgroups, doubles but no
// halves. It runs a block on one core, whose threads are the iterations of loops, so local memory
// is ordinary memory; 256 KiB of it are an estimate of what every processor has (it says 1 MiB with
// AVX-512), and so are the numbers of the machine.
Gpu opencl_pocl() {
  Gpu gpu;
  gpu.api = GpuApi::kOpenCl;
  gpu.arch = "opencl-pocl";
  gpu.sms = 4;
  gpu.warp = 8;
  gpu.warps_per_sm = 512;
  gpu.blocks_per_sm = 1;
  gpu.threads_per_block = 1024;
  gpu.registers_per_sm = 0;
  gpu.shared_bytes = gpu.shared_bytes_opt_in = gpu.shared_bytes_per_sm = 256 * kKi;
  gpu.shared_bytes_per_cycle = 64;
  gpu.l2_bytes = 32 * kMi;
  gpu.l2_bytes_per_cycle = 16;
  gpu.memory_bandwidth = 20e9;
  gpu.memory_bytes = 16 * kGi;
  gpu.ghz = 2.5;
  gpu.fma_per_cycle = 16;
  gpu.fp64 = gpu.is_cpu = true;
  return gpu;
}

}  // namespace

std::span<const NamedGpu> gpu_table() {
  static const NamedGpu kTable[] = {
      {"cuda-sm_80", sm_80()},        {"cuda-sm_86", sm_86()},
      {"cuda-sm_89", sm_89()},        {"cuda-sm_90a", sm_90a()},
      {"cuda-sm_90a-h200", h200()},   {"cuda-sm_100", sm_100()},
      {"cuda-sm_120", sm_120()},      {"opencl-generic", opencl_generic()},
      {"opencl-pocl", opencl_pocl()},
  };
  return kTable;
}

}  // namespace hone::target
