#include "hone/backend/executable.h"

#include <algorithm>

namespace hone::backend {

bool Executable::prepares_constants() const {
  return std::any_of(entries.begin(), entries.end(),
                     [](const EntryPoint& entry) { return entry.prepare; });
}

Executable prepare_part(const Executable& executable) {
  Executable part = executable;
  if (!executable.prepare_code.empty()) {
    part.code = std::exchange(part.prepare_code, {});
    part.kind = target::Kind::kCpu;
  }
  std::erase_if(part.entries, [](const EntryPoint& entry) { return !entry.prepare; });
  return part;
}

}  // namespace hone::backend
