#include "hone/target/gpu_devices.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "hone/runtime/device/device.h"
#include "hone/target/gpu_table.h"
#include "hone/target/key_text.h"

namespace hone::target {
namespace {

constexpr int kOldestCapability = 80;  // the oldest whose instructions are described
constexpr int64_t kGi = 1 << 30;
constexpr int kMostThreads = 1024;  // of a block, that programs may have (ir/verifier.h)
constexpr std::string_view kPocl = "Portable Computing Language";

int64_t memory_on_board(const Gpu& gpu) {
  const int64_t gib = (gpu.memory_bytes + kGi - 1) / kGi;
  return gib <= 8 ? gib : (gib + 7) / 8 * 8;
}

template <typename Field, typename Value>
void set_if_known(Field& field, Value value) {
  if (value > 0) field = static_cast<Field>(value);
}

// Returns the newest architecture that is not newer, on the device with the most similar memory,
// under the name of the capability.
Gpu most_like(int capability, int64_t memory_bytes) {
  const Gpu* best = nullptr;
  const auto distance = [&](const Gpu& gpu) { return std::abs(gpu.memory_bytes - memory_bytes); };
  for (const auto& [name, gpu] : gpu_table()) {
    if (gpu.api != GpuApi::kCuda || gpu.capability > capability) continue;
    if (best == nullptr || gpu.capability > best->capability ||
        (gpu.capability == best->capability && distance(gpu) < distance(*best)))
      best = &gpu;
  }
  Gpu like = *best;
  if (like.capability != capability) like.arch = fmt::format("sm_{}", capability);
  like.capability = capability;
  return like;
}

std::string lower_case_words(std::string_view text) {
  std::string words;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.empty() && words.back() != '-') {
      words += '-';
    }
  }
  while (words.ends_with('-')) words.pop_back();
  return words;
}

Gpu opencl_of(const runtime::DeviceProperties& p) {
  const bool pocl = p.is_cpu && std::string_view(p.platform) == kPocl;
  Gpu gpu = *described_gpu(pocl ? "opencl-pocl" : "opencl-generic");
  if (!pocl) gpu.arch = "opencl-" + lower_case_words(p.name);
  set_if_known(gpu.shared_bytes, p.block_shared_bytes);
  gpu.shared_bytes_opt_in = gpu.shared_bytes;
  gpu.shared_bytes_per_sm = std::max(gpu.shared_bytes, p.unit_shared_bytes);
  gpu.fp16 = p.has_half;
  gpu.fp64 = p.has_double;
  gpu.subgroups = p.has_subgroups;
  gpu.is_cpu = p.is_cpu;
  return gpu;
}

Result<Gpu> cuda_of(const runtime::DeviceProperties& p) {
  if (p.capability < kOldestCapability)
    return error(Code::kUnsupported, "{} has compute capability {}.{}, expected 8.0 or a newer one",
                 p.name, p.capability / 10, p.capability % 10);
  Gpu gpu = most_like(p.capability, p.memory_bytes);
  set_if_known(gpu.shared_bytes_opt_in, p.block_shared_bytes);
  set_if_known(gpu.shared_bytes_per_sm, p.unit_shared_bytes);
  set_if_known(gpu.registers_per_sm, p.unit_registers);
  // Memory of GPUs moves data on both edges of its clock.
  set_if_known(gpu.memory_bandwidth, 2e3 * p.memory_clock_khz * (p.memory_bus_bits / 8));
  return gpu;
}

Result<runtime::DeviceProperties> properties_of(const Gpu& wanted) {
  std::string message(runtime::kDeviceErrorBytes, '\0');
  runtime::DeviceProperties properties;
  const runtime::DeviceKind kind = driver_kind(wanted);
  const int index = runtime::device_find(kind, driver_name(wanted).c_str(), message.data());
  if (index < 0 || !runtime::device_describe(kind, index, properties, message.data()))
    return Status(Code::kUnsupported, message.c_str());
  return properties;
}

Result<Gpu> ask_driver(const Gpu& wanted) {
  HONE_ASSIGN_OR_RETURN(const runtime::DeviceProperties properties, properties_of(wanted));
  return gpu_of(properties);
}

// Returns the device of an architecture with this memory, or else the first of the architecture; of
// one that has no row, what gpu_of() makes of its device.
std::optional<Gpu> of_architecture(std::string_view arch, int64_t gib) {
  std::optional<Gpu> best;
  for (const auto& [name, gpu] : gpu_table()) {
    if (gpu.arch == arch && (!best || memory_on_board(gpu) == gib)) best = gpu;
  }
  if (!best && arch.starts_with("opencl-")) {
    best = described_gpu("opencl-generic");
    best->arch = arch;
  }
  const bool is_cuda = !best && arch.starts_with("sm_");
  const int capability = is_cuda ? parse_count(arch.substr(3), "") : 0;
  if (capability >= kOldestCapability) best = most_like(capability, gib * kGi);
  return best;
}

const char* yes_no(bool value) { return value ? "yes" : "no"; }

}  // namespace

std::vector<std::string> described_gpus() {
  std::vector<std::string> names;
  for (const auto& [name, gpu] : gpu_table()) names.emplace_back(name);
  return names;
}

std::optional<Gpu> described_gpu(std::string_view name) {
  for (const NamedGpu& row : gpu_table()) {
    if (name == row.name) return row.gpu;
  }
  return std::nullopt;
}

Result<Gpu> gpu_of(const runtime::DeviceProperties& p) {
  Result<Gpu> found = p.kind == runtime::DeviceKind::kCuda ? cuda_of(p) : opencl_of(p);
  if (!found.ok()) return found;
  Gpu& gpu = *found;
  set_if_known(gpu.sms, p.compute_units);
  set_if_known(gpu.warp, p.warp_threads);
  set_if_known(gpu.threads_per_block, std::min(p.max_block_threads, kMostThreads));
  set_if_known(gpu.warps_per_sm, p.max_unit_threads / gpu.warp);
  set_if_known(gpu.blocks_per_sm, p.max_unit_blocks);
  set_if_known(gpu.l2_bytes, p.cache_bytes);
  set_if_known(gpu.memory_bytes, p.memory_bytes);
  set_if_known(gpu.ghz, p.clock_khz * 1e-6);
  return found;
}

Result<Gpu> detect_gpu(GpuApi api) {
  static const Result<Gpu> cuda = ask_driver({.api = GpuApi::kCuda});
  static const Result<Gpu> opencl = ask_driver({.api = GpuApi::kOpenCl});
  return api == GpuApi::kCuda ? cuda : opencl;
}

runtime::DeviceKind driver_kind(const Gpu& gpu) {
  return gpu.api == GpuApi::kCuda ? runtime::DeviceKind::kCuda : runtime::DeviceKind::kOpenCl;
}

Result<std::string> driver_product(const Gpu& gpu) {
  HONE_ASSIGN_OR_RETURN(const runtime::DeviceProperties properties, properties_of(gpu));
  return std::string(properties.name);
}

std::string driver_name(const Gpu& gpu) {
  const bool pocl = gpu.arch == described_gpu("opencl-pocl")->arch;
  return pocl ? std::string(kPocl) : std::string();
}

Result<Gpu> detect_gpu(const Gpu& described) {
  return driver_name(described).empty() ? detect_gpu(described.api) : ask_driver(described);
}

std::string device_key(const Gpu& gpu) {
  return fmt::format("{}-{}sm-{}-{}G", gpu.arch, gpu.sms, size_text(gpu.l2_bytes),
                     memory_on_board(gpu));
}

std::optional<Gpu> gpu_of_key(std::string_view key) {
  const int gib = parse_count(cut_last_part(key), "G");
  const int64_t l2 = parse_size(cut_last_part(key));
  const int sms = parse_count(cut_last_part(key), "sm");
  if (gib == 0 || l2 == 0 || sms == 0) return std::nullopt;
  std::optional<Gpu> gpu = of_architecture(key, gib);
  if (!gpu) return std::nullopt;
  gpu->sms = sms;
  gpu->l2_bytes = l2;
  if (memory_on_board(*gpu) != gib) gpu->memory_bytes = gib * kGi;
  return gpu;
}

std::string describe(const Gpu& gpu) {
  std::string text = fmt::format("interface: {}\narchitecture: {}\n", api_name(gpu.api), gpu.arch);
  if (gpu.capability > 0)
    text += fmt::format("compute capability: {}.{}\n", gpu.capability / 10, gpu.capability % 10);
  text += fmt::format("processors: {} SMs at {:.2f} GHz, {} FMA per cycle\n", gpu.sms, gpu.ghz,
                      gpu.fma_per_cycle);
  text +=
      fmt::format("threads: {} in a warp, at most {} in a block; {} warps and {} blocks on an SM\n",
                  gpu.warp, gpu.threads_per_block, gpu.warps_per_sm, gpu.blocks_per_sm);
  if (gpu.registers_per_sm > 0)
    text += fmt::format("registers: {} of an SM, at most {} of a thread\n", gpu.registers_per_sm,
                        gpu.registers_per_thread);
  text += fmt::format(
      "shared memory: {} bytes of a block, {} if it asks for more, {} of an SM, {} bytes per cycle\n",
      gpu.shared_bytes, gpu.shared_bytes_opt_in, gpu.shared_bytes_per_sm,
      gpu.shared_bytes_per_cycle);
  text += fmt::format("L2: {} bytes, {} bytes per cycle and SM\n", gpu.l2_bytes,
                      gpu.l2_bytes_per_cycle);
  text +=
      fmt::format("memory: {} bytes, {:.0f} GB/s\n", gpu.memory_bytes, gpu.memory_bandwidth * 1e-9);
  for (const MatrixInstruction& m : gpu.matrix) {
    text += fmt::format("matrix instruction: {}x{}x{}, {} to {}, {:.0f} FMA per cycle and SM{}\n",
                        m.m, m.n, m.k, m.input == DType::kF32 ? "tf32" : dtype_name(m.input),
                        dtype_name(m.accumulator), m.fma_per_cycle,
                        m.warp_group ? ", of four warps" : "");
  }
  text += fmt::format("asynchronous copies: {}\nbulk copies: {}\nclusters: {}\n",
                      yes_no(gpu.async_copy), yes_no(gpu.bulk_copy),
                      gpu.cluster == 0 ? "no" : fmt::format("{} blocks", gpu.cluster));
  text += fmt::format("halves: {}\ndoubles: {}\nshuffles: {}\n", yes_no(gpu.fp16), yes_no(gpu.fp64),
                      yes_no(gpu.subgroups));
  return text;
}

}  // namespace hone::target
