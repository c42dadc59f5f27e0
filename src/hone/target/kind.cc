#include "hone/target/kind.h"

#include "hone/target/target.h"

namespace hone::target {

std::string_view kind_name(Kind kind) { return kind == Kind::kCpu ? "CPU" : "GPU"; }

Kind kind_of(const Target& target) {
  for (const std::string_view gpu : {"nvptx", "amdgcn", "spirv"}) {
    if (target.triple.starts_with(gpu)) return Kind::kGpu;
  }
  return Kind::kCpu;
}

}  // namespace hone::target
