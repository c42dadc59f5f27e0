#include "hone/machine/machine.h"

#include "hone/base/clock.h"
#include "hone/target/gpu_devices.h"

namespace hone::machine {

Result<target::Target> Machine::find(std::string_view name) const {
  if (name == "host") return target();
  HONE_ASSIGN_OR_RETURN(target::Target found, target::find(name));
  if (found.kind() == target::Kind::kGpu && found.gpu().api == target::GpuApi::kOpenCl) {
    const Result<target::Gpu> here = gpu_here(found.gpu());
    if (here.ok() && here->arch == found.gpu().arch) found.part = *here;
  }
  if (!name.starts_with("host-") || target().kind() != target::Kind::kCpu) return found;
  // A part of the machine has fewer instructions; the rest is the machine's.
  const target::Cpu& whole = target().cpu();
  target::Cpu& part = found.cpu();
  part.cores = whole.cores;
  part.ghz = whole.ghz;
  part.caches = whole.caches;
  part.memory_bytes_per_cycle = whole.memory_bytes_per_cycle;
  return found;
}

Result<target::Gpu> Machine::gpu_here(const target::Gpu& /*described*/) const {
  return error(Code::kUnsupported, "this machine has no GPU");
}

bool Machine::runs(const target::Target& part) const {
  if (part.kind() == target::Kind::kCpu) return target::is_part_of(part, target());
  const std::string key = target::device_key(part);
  if (key == target::device_key(target())) return true;
  const Result<target::Gpu> here = gpu_here(part.gpu());
  return here.ok() && key == target::device_key(*here);
}

Result<target::Target> Machine::find_measurable(std::string_view name) const {
  HONE_ASSIGN_OR_RETURN(target::Target found, find(name));
  if (runs(found)) return found;
  if (found.kind() == target::Kind::kCpu)
    return error(
        Code::kUnsupported,
        "device {} cannot be measured here, only compiled for; expected host or a part of it",
        name);
  const Result<target::Gpu> here = gpu_here(found.gpu());
  return error(Code::kUnsupported, "device {} cannot be measured here, only compiled for: {}", name,
               here.ok() ? fmt::format("the GPU of this machine is {}", target::device_key(*here))
                         : here.status().message());
}

measure::CoreWatch Machine::watch_cores(int threads,
                                        const measure::CoreWatch::Options& options) const {
  return {conditions().core_look(threads), real_clock(), options};
}

}  // namespace hone::machine
