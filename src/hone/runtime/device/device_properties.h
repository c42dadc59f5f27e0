// runtime/device/device_properties.h - the numbers that a driver says about a device, or 0 where it
// does not.
#pragma once

#include <stdint.h>

namespace hone::runtime {

// Values are written into artifacts.
enum class DeviceKind : int32_t { kNone = 0, kOpenCl = 1, kCuda = 2 };

struct DeviceProperties {
  DeviceKind kind = DeviceKind::kNone;
  char name[128] = "";
  char platform[128] = "";     // OpenCL: the name of its platform; CUDA: "CUDA"
  char driver[64] = "";        // version of the driver
  bool is_cpu = false;         // OpenCL on the host's cores
  bool shares_memory = false;  // its memory is the host's
  bool has_half = false;       // computes with 16-bit floats
  bool has_double = false;     // computes with 64-bit floats
  bool has_subgroups = false;  // threads of a warp exchange values
  int32_t compute_units = 0;   // multiprocessors of CUDA
  int32_t clock_khz = 0;
  int32_t capability = 0;  // CUDA: 10 * major + minor
  int32_t warp_threads = 0;
  int32_t max_block_threads = 0;
  int32_t max_unit_threads =
      0;  // the most threads at once, and blocks at once, of a multiprocessor
  int32_t max_unit_blocks = 0;
  int32_t unit_registers = 0;      // 32-bit registers of a multiprocessor
  int64_t block_shared_bytes = 0;  // shared memory (OpenCL: local) that a block may have
  int64_t unit_shared_bytes = 0;   // shared memory of a multiprocessor
  int64_t memory_bytes = 0;
  int64_t max_buffer_bytes = 0;  // the largest size of one buffer
  int64_t cache_bytes = 0;       // last-level cache
  int32_t memory_clock_khz = 0;
  int32_t memory_bus_bits = 0;
};

}  // namespace hone::runtime
