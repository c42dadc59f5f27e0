// target/gpu.h - the description of a GPU, or of another device that OpenCL offers, in the words of
// CUDA: an SM is OpenCL's compute unit, a warp its subgroup, a block its work-group, shared memory
// its local memory. Rules, models and the printer compute from these numbers; no code asks for the
// name of a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hone/dtype.h"

namespace hone::target {

enum class GpuApi : uint8_t { kCuda, kOpenCl };
[[nodiscard]] constexpr std::string_view api_name(GpuApi api) {
  return api == GpuApi::kCuda ? "CUDA" : "OpenCL";
}

// An instruction that adds the product of two small matrices to a third one, C[m, n] += A[m, k] *
// B[k, n], with all lanes of a warp.
struct MatrixInstruction {
  int m, n, k;
  DType input;  // type of A and B; the instruction rounds float32 to tf32
  DType accumulator;
  double fma_per_cycle;  // multiply-adds per cycle and SM
  // If it is true, four neighbouring warps execute the instruction together, take B (and A, if
  // wanted) from shared memory, and do not wait for the result (wgmma). `n` is the largest of the
  // multiples of 8 that it takes.
  bool warp_group = false;
};

struct Gpu {
  GpuApi api = GpuApi::kCuda;
  std::string arch;    // as CUDA's compilers name it, "sm_90a"; a short name with OpenCL, "pocl"
  int capability = 0;  // 10 * major + minor number of the compute capability; 0 with OpenCL
  int sms = 1;
  int warp = 32;                           // lanes that run in step
  int warps_per_sm = 48;                   // most that reside on an SM
  int blocks_per_sm = 16;                  // most that reside on an SM
  int threads_per_block = 1024;            // largest size of a block
  int64_t registers_per_sm = 65536;        // registers of 32 bits; 0 if they limit nothing
  int registers_per_thread = 255;          // most that the code of a thread can use
  int64_t shared_bytes = 48 << 10;         // most of a block that does not ask for more
  int64_t shared_bytes_opt_in = 48 << 10;  // most of a block that asks for more
  int64_t shared_bytes_per_sm = 48 << 10;  // all blocks that reside on an SM share it
  int64_t shared_bytes_reserved = 0;       // the system takes it from an SM for each block
  int shared_bytes_per_cycle = 128;        // read bandwidth of an SM from shared memory
  int64_t l2_bytes = 0;
  int l2_bytes_per_cycle = 64;  // read bandwidth of an SM from L2
  double memory_bandwidth = 0;  // in bytes per second
  int64_t memory_bytes = 0;
  double ghz = 1;                         // clock of the SMs under load
  int fma_per_cycle = 64;                 // float32 multiply-adds per cycle and SM
  std::vector<MatrixInstruction> matrix;  // empty if there is none
  bool async_copy = false;  // copies from global to shared memory that do not wait (cp.async)
  bool bulk_copy = false;   // one thread starts the copy of a box of a tensor (TMA)
  int cluster = 0;          // most blocks that reach each other's shared memory; 0 if none do
  bool fp16 = false;        // it computes with halves
  bool fp64 = false;        // it computes with doubles
  bool subgroups = false;   // lanes of a warp exchange values (shuffles)
  bool is_cpu = false;      // it is the cores of a CPU, which OpenCL offers as a device
};

}  // namespace hone::target
