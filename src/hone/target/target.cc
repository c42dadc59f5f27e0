#include "hone/target/target.h"

#include "hone/target/cpu_devices.h"
#include "hone/target/gpu_devices.h"

namespace hone::target {
namespace {

// Names of GPUs at hand, which a driver describes.
std::optional<GpuApi> api_named(std::string_view name) {
  if (name == "cuda") return GpuApi::kCuda;
  if (name == "opencl") return GpuApi::kOpenCl;
  return std::nullopt;
}

// Returns a device that is described here; nothing if the name is none.
std::optional<Target> described(std::string_view name) {
  if (name == "host") return host();
  Target target{.name = std::string(name)};
  if (const std::optional<Gpu> gpu = described_gpu(name)) {
    target.part = *gpu;
    return target;
  }
  const std::optional<Cpu> cpu =
      name == "host-avx2" ? limited_to_avx2(host().cpu()) : described_cpu(name);
  if (!cpu) return std::nullopt;
  target.part = *cpu;
  return target;
}

}  // namespace

const Target& host() {
  static const Target target{.name = "host", .part = detect_cpu()};
  return target;
}

std::vector<std::string> names() {
  std::vector<std::string> result = {"host", "host-avx2"};
  for (std::string& name : described_cpus()) result.push_back(std::move(name));
  result.insert(result.end(), {"cuda", "opencl"});
  for (std::string& name : described_gpus()) result.push_back(std::move(name));
  return result;
}

Result<Target> find(std::string_view name) {
  if (std::optional<Target> target = described(name)) return *std::move(target);
  if (const std::optional<GpuApi> api = api_named(name)) {
    const Result<Gpu> gpu = detect_gpu(*api);
    if (gpu.ok()) return Target{.name = std::string(name), .part = *gpu};
    return error(gpu.status().code(), "there is no device {}: {}", name, gpu.status().message());
  }
  return error(Code::kNotFound, "unknown device '{}', expected one of: {}", name,
               fmt::join(names(), ", "));
}

bool is_part_of(const Target& part, const Target& machine) {
  return part.kind() == Kind::kCpu && machine.kind() == Kind::kCpu &&
         part.name.starts_with("host") && has_features(machine.cpu(), part.cpu());
}

bool runs_here(const Target& target) { return is_part_of(target, host()); }

std::string device_key(const Target& target) {
  return std::visit([](const auto& part) { return device_key(part); }, target.part);
}

Result<Target> of_key(std::string_view key) {
  for (const std::string& name : names()) {
    std::optional<Target> named = described(name);
    if (named && device_key(*named) == key) return *std::move(named);
  }
  if (const std::optional<Gpu> gpu = gpu_of_key(key))
    return Target{.name = std::string(key), .part = *gpu};
  if (const std::optional<Cpu> cpu = cpu_of_key(key))
    return Target{.name = std::string(key), .part = *cpu};
  return error(Code::kUnsupported, "device {} is not described here (hone devices)", key);
}

std::string describe(const Target& target) {
  return fmt::format("name: {}\nkey: {}\n{}", target.name, device_key(target),
                     std::visit([](const auto& part) { return describe(part); }, target.part));
}

}  // namespace hone::target
