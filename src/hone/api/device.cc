#include "hone/device.h"

#include <algorithm>

#include "hone/analysis/gpu_measure.h"
#include "hone/base/status.h"
#include "hone/db/roofline_store.h"
#include "hone/db/store_to_add.h"
#include "hone/measure/core_state.h"
#include "hone/measure/measure_roofline.h"
#include "hone/remote/remote_machine.h"
#include "hone/target/gpu_devices.h"
#include "hone/target/target.h"
#include "hone/target/topology.h"
#include "hone/trial/roofline.h"

namespace hone {
namespace {

void describe(const target::Cpu& cpu, Device& device) {
  device.triple = cpu.triple;
  device.cpu = cpu.model;
  device.cores = cpu.cores;
  device.ghz = cpu.ghz;
  device.vector_bytes = cpu.vector_bytes;
  device.vector_registers = cpu.vector_registers;
  device.core_flops = 2.0 * cpu.fma_per_cycle * cpu.lanes(4) * cpu.ghz * 1e9;
  for (const target::Cache& cache : cpu.caches)
    device.caches.push_back({cache.level, cache.bytes, cache.line_bytes, cache.shared_by});
}

double peak_flops(const target::Gpu& gpu) {
  return 2.0 * gpu.fma_per_cycle * gpu.sms * gpu.ghz * 1e9;
}

void describe(const target::Gpu& gpu, Device& device) {
  device.gpu = {.interface = std::string(target::api_name(gpu.api)),
                .architecture = gpu.arch,
                .multiprocessors = gpu.sms,
                .ghz = gpu.ghz,
                .flops = peak_flops(gpu),
                .l2_bytes = gpu.l2_bytes,
                .memory_bytes = gpu.memory_bytes,
                .memory_bandwidth = gpu.memory_bandwidth};
}

// The peaks of a description, of the device as a whole.
Roofline roofline_of(const target::Gpu& gpu) {
  const double cycles = gpu.sms * gpu.ghz * 1e9;
  const auto rate = [](double all) { return Rate{all, all}; };
  const Rate l2 = rate(gpu.l2_bytes_per_cycle * cycles), memory = rate(gpu.memory_bandwidth);
  Roofline roofline{.cores = 1, .flops = rate(peak_flops(gpu)), .fork_join = {}, .levels = {}};
  if (gpu.l2_bytes > 0) roofline.levels.push_back({2, gpu.l2_bytes, 1, l2, l2});
  roofline.levels.push_back({0, 0, 1, memory, memory});
  for (const target::MatrixInstruction& m : gpu.matrix) {
    const bool adds_floats = m.accumulator == DType::kF32 && !m.warp_group;
    if (adds_floats)
      roofline.matrix.push_back({std::string(dtype_name(m.input)), 2 * m.fma_per_cycle * cycles});
  }
  if (!gpu.is_cpu) roofline.launch_seconds = analysis::kLaunchSeconds;
  return roofline;
}

}  // namespace

std::vector<std::string> device_names() { return target::names(); }

Result<Device> find_device(const std::string& name, const std::string& machine) {
  HONE_ASSIGN_OR_RETURN(const machine::Machine* const named, remote::machine_named(machine));
  HONE_ASSIGN_OR_RETURN(const target::Target target,
                        machine.empty() ? target::find(name) : named->find(name));
  Device device = {.name = target.name,
                   .key = target::device_key(target),
                   .gpu = {},
                   .triple = {},
                   .cpu = {},
                   .caches = {},
                   .text = target::describe(target)};
  if (target.kind() == target::Kind::kGpu) {
    describe(target.gpu(), device);
  } else {
    describe(target.cpu(), device);
  }
  return device;
}

Result<Device> find_device_of_driver(const std::string& product) {
  for (const char* name : {"cuda", "opencl", "opencl-pocl"}) {
    const Result<target::Target> target = target::find(name);
    if (!target.ok()) continue;
    const Result<std::string> here = target::driver_product(target->gpu());
    if (here.ok() && *here == product) return find_device(name);
  }
  return error(Code::kNotFound, "no driver of this machine has a device '{}'", product);
}

Result<Roofline> measure_roofline(const std::string& db, const std::atomic<bool>* interrupted) {
  // Seconds of measuring are not to end at a database that cannot be written.
  HONE_RETURN_IF_ERROR(db::open_store_to_add(db).status());
  const target::Target& host = target::host();
  HONE_ASSIGN_OR_RETURN(Roofline roofline,
                        measure::measure_roofline(host, {.interrupted = interrupted}));
  HONE_RETURN_IF_ERROR(db::save_roofline(db, target::device_key(host), roofline));
  return roofline;
}

Result<std::optional<Roofline>> stored_roofline(const std::string& db, const std::string& device) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(device));
  if (target.kind() == target::Kind::kGpu)
    return std::optional<Roofline>(roofline_of(target.gpu()));
  Result<std::optional<Roofline>> stored = db::load_roofline(db, target::device_key(target));
  if (!stored.ok() && db.empty()) return std::optional<Roofline>();
  return stored;
}

Bound least_time(double flops, double bytes, const Roofline& roofline, int threads,
                 std::string_view matrix) {
  return trial::bound(flops, bytes, bytes, roofline, threads, matrix);
}

double fork_join_seconds(const Roofline& roofline, int threads) {
  return trial::fork_join_seconds(roofline.fork_join, threads);
}

std::string describe(const Roofline& roofline) { return trial::describe(roofline); }

CoreReport look_at_cores(int threads, double nearest_seconds) {
  std::vector<int> cpus = target::cpus_of_cores();
  const int wanted = threads > 0 ? threads : target::host().cpu().cores;
  cpus.resize(std::min(cpus.size(), static_cast<size_t>(wanted)));
  const measure::CoreState state = measure::look_at_cores(cpus);
  CoreReport report = {.threads = static_cast<int>(cpus.size()),
                       .slowdown = state.slowdown,
                       .exchange_seconds = state.exchange,
                       .apart = measure::have_cores(state),
                       .nearest_seconds = nearest_seconds};
  report.good = measure::are_good(state, report.nearest_seconds);
  return report;
}

}  // namespace hone
