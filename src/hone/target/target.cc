#include "hone/target/target.h"

#include "hone/target/cpu_devices.h"

namespace hone::target {

const Target& host() {
  static const Target target{.name = "host", .part = detect_cpu()};
  return target;
}

std::vector<std::string> names() {
  std::vector<std::string> result = {"host", "host-avx2"};
  for (std::string& name : described_cpus()) result.push_back(std::move(name));
  return result;
}

Result<Target> find(std::string_view name) {
  if (name == "host") return host();
  const std::optional<Cpu> cpu =
      name == "host-avx2" ? limited_to_avx2(host().cpu()) : described_cpu(name);
  if (cpu) return Target{.name = std::string(name), .part = *cpu};
  return error(Code::kNotFound, "unknown device '{}', expected one of: {}", name,
               fmt::join(names(), ", "));
}

bool is_part_of(const Target& part, const Target& machine) {
  return part.kind() == Kind::kCpu && machine.kind() == Kind::kCpu &&
         part.name.starts_with("host") && has_features(machine.cpu(), part.cpu());
}

bool runs_here(const Target& target) { return is_part_of(target, host()); }

Result<Target> find_here(std::string_view name) {
  HONE_ASSIGN_OR_RETURN(Target target, find(name));
  if (runs_here(target)) return target;
  return error(
      Code::kUnsupported,
      "device {} cannot be measured here, only compiled for; expected host or a part of it", name);
}

std::string device_key(const Target& target) {
  if (target.kind() == Kind::kGpu) return target.gpu().arch;
  return device_key(target.cpu());
}

Result<Target> of_key(std::string_view key) {
  for (const std::string& name : names()) {
    HONE_ASSIGN_OR_RETURN(Target named, find(name));
    if (device_key(named) == key) return named;
  }
  const std::optional<Cpu> cpu = cpu_of_key(key);
  if (!cpu) return error(Code::kUnsupported, "device {} is not described here (hone devices)", key);
  return Target{.name = std::string(key), .part = *cpu};
}

std::string describe(const Target& target) {
  return fmt::format("name: {}\nkey: {}\n{}", target.name, device_key(target),
                     describe(target.cpu()));
}

}  // namespace hone::target
