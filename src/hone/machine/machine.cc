#include "hone/machine/machine.h"

#include "hone/base/clock.h"

namespace hone::machine {

Result<target::Target> Machine::find(std::string_view name) const {
  if (name == "host") return target();
  HONE_ASSIGN_OR_RETURN(target::Target found, target::find(name));
  if (found.kind() != target::Kind::kCpu)
    return error(
        Code::kUnsupported,
        "device {} is a GPU, for which nothing can be compiled yet; expected a CPU, such as "
        "host",
        name);
  if (!name.starts_with("host-")) return found;
  // A part of the machine has fewer instructions; the rest is the machine's.
  const target::Cpu& whole = target().cpu();
  target::Cpu& part = found.cpu();
  part.cores = whole.cores;
  part.ghz = whole.ghz;
  part.caches = whole.caches;
  part.memory_bytes_per_cycle = whole.memory_bytes_per_cycle;
  return found;
}

bool Machine::runs(const target::Target& part) const { return target::is_part_of(part, target()); }

Result<target::Target> Machine::find_measurable(std::string_view name) const {
  HONE_ASSIGN_OR_RETURN(target::Target found, find(name));
  if (runs(found)) return found;
  return error(
      Code::kUnsupported,
      "device {} cannot be measured here, only compiled for; expected host or a part of it", name);
}

measure::CoreWatch Machine::watch_cores(int threads,
                                        const measure::CoreWatch::Options& options) const {
  return {conditions().core_look(threads), real_clock(), options};
}

}  // namespace hone::machine
