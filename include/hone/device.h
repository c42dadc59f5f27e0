// device.h - the machines that models can be compiled for, and what this one can do at best. With
// measured limits, the time of each kernel can be compared with the least time that it needs
// (Williams et al., CACM 52(4), 2009, with a roof per cache level).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/export.h"
#include "hone/status.h"

namespace hone {

struct DeviceCache {
  int level = 0;  // 1 is the closest to the core
  int64_t bytes = 0;
  int line_bytes = 0;
  int shared_by = 1;  // number of cores that share one such cache
};

// A GPU, or another device that OpenCL offers.
struct GpuDevice {
  std::string interface;     // "CUDA" or "OpenCL"
  std::string architecture;  // such as "sm_90a" or "opencl-pocl"
  int multiprocessors = 1;   // the compute units of OpenCL
  double ghz = 0;
  double flops = 0;  // float32 operations per second, without matrix instructions
  int64_t l2_bytes = 0, memory_bytes = 0;
  double memory_bandwidth = 0;  // in bytes per second
};

struct Device {
  std::string name;              // as TargetOptions::device takes it
  std::string key;               // the name under which records of it are stored
  std::optional<GpuDevice> gpu;  // of a GPU; the numbers up to `caches` are those of a CPU
  std::string triple, cpu;  // as LLVM names them, such as "x86_64-linux-gnu" and "sapphirerapids"
  int cores = 0;            // cores that this process may use, or that the description has
  double ghz = 0;           // nominal clock
  int vector_bytes = 0;     // width of the widest vector register that code uses
  int vector_registers = 0;
  double core_flops = 0;  // float32 operations per second of one core at the nominal clock
  std::vector<DeviceCache> caches;  // ordered by level
  std::string text;                 // one line per property
};

// Returns the names of all devices; "host", which is this machine, is the first. "cuda" and
// "opencl" are the GPUs of this machine, if it has some.
[[nodiscard]] HONE_API std::vector<std::string> device_names();
// Finds a device by its name. The error lists the known names, or says why there is no such GPU
// here. `machine` is the one that "host" stands for, as TargetOptions::machine; empty: this one.
[[nodiscard]] HONE_API Result<Device> find_device(const std::string& name = "host",
                                                  const std::string& machine = "");

// Returns the GPU of this machine whose driver calls it so (Model::device()). It is an error if
// there is none.
[[nodiscard]] HONE_API Result<Device> find_device_of_driver(const std::string& product);

// A rate of one core alone, and one of all cores together.
struct Rate {
  double one = 0, all = 0;

  // Returns the rate of `threads` threads on a machine of so many cores: rates of single cores add
  // up until they reach that of all cores, which is no less than that of one.
  [[nodiscard]] double of(int threads, int cores) const {
    const double most = std::max(all, one);
    return threads >= cores ? most : std::min(one * std::max(threads, 1), most);
  }
};

struct RooflineLevel {
  int level = 0;      // 1 for the closest cache, 0 for memory
  int64_t bytes = 0;  // size of one such cache; 0 for memory
  int shared_by = 1;  // number of cores that share one
  Rate read, write;   // in bytes per second

  // Returns the greater one of reads and writes, as no mix of both is faster.
  [[nodiscard]] double bandwidth(int threads, int cores) const {
    return std::max(read.of(threads, cores), write.of(threads, cores));
  }
};

// The time from the start to the end of a phase with one tile per thread, each thread on its own
// core and awake.
struct ForkJoin {
  int threads = 2;
  double seconds = 0;
};

// The rate of instructions that multiply matrices of elements of a type, "f16", "bf16" or "f32",
// whose elements are rounded to tf32. They add in float32.
struct MatrixRate {
  std::string type;
  double flops = 0;  // operations per second
};

// The measured limits of a machine, or those of the description of a GPU.
struct Roofline {
  int cores = 1;
  Rate flops;  // float32 operations per second; an FMA counts as two
  // By increasing number of threads, up to all cores; empty on one core.
  std::vector<ForkJoin> fork_join;
  std::vector<RooflineLevel> levels;    // closest cache first, memory last
  int64_t unix_time = 0;                // time of the measurement in seconds
  double host_load = 0;                 // 1-minute load average during the measurement
  std::vector<MatrixRate> matrix = {};  // of a GPU
  double launch_seconds = 0;            // of a GPU: from one kernel to the next one
};

// The least seconds of some work, and what allows no less.
struct Bound {
  double seconds = 0;
  // Limiting factor: "compute"; "matrix", by instructions for matrices; the level whose bandwidth
  // it is, such as "L2" or "memory"; or "launch", the time between two kernels of a GPU.
  std::string_view what;
};

// Measures the limits of this machine, in about 5 seconds, and stores them in the database `db`
// (RecordOptions::db). Other work on the machine makes them lower than they are.
[[nodiscard]] HONE_API Result<Roofline> measure_roofline(
    const std::string& db = "", const std::atomic<bool>* interrupted = nullptr);
// Returns the limits of a device that a database has; nothing if it has none, or for a GPU, which
// is not measured, those of its description. A database that exists only by default, with an empty
// `db`, may be missing or broken.
[[nodiscard]] HONE_API Result<std::optional<Roofline>> stored_roofline(
    const std::string& db = "", const std::string& device = "host");
// Returns the least time for `flops` operations on `bytes` that are read or written by so many
// threads, if the data is in the closest cache that holds it. `matrix` is the type of MatrixRate
// whose instructions may compute it, or empty.
[[nodiscard]] HONE_API Bound least_time(double flops, double bytes, const Roofline& roofline,
                                        int threads, std::string_view matrix = {});
// Returns the seconds for the start and the end of a phase on so many threads, interpolated between
// measured numbers of threads; 0 if nothing was measured.
[[nodiscard]] HONE_API double fork_join_seconds(const Roofline& roofline, int threads);
// Returns one line per figure.
[[nodiscard]] HONE_API std::string describe(const Roofline& roofline);

// How the cores of this machine stand to each other now. On a virtual machine that changes: its
// CPUs may be hardware threads of one core for a while.
struct CoreReport {
  int threads = 1;
  double slowdown = 1;          // time of all threads at once / time of one alone
  double exchange_seconds = 0;  // for a cache line to the farthest core and back
  bool apart = false;           // each thread has a core of its own
  bool good = false;            // they are apart and about as close as they were before
  double nearest_seconds = 0;   // the least exchange so far, for the next call
};
// Looks at the cores for about a millisecond. `threads`: 0 for all cores; `nearest_seconds`: that
// of earlier reports, 0 if there is none.
[[nodiscard]] HONE_API CoreReport look_at_cores(int threads = 0, double nearest_seconds = 0);

}  // namespace hone
