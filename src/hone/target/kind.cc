#include "hone/target/kind.h"

namespace hone::target {

std::string_view kind_name(Kind kind) { return kind == Kind::kCpu ? "CPU" : "GPU"; }

}  // namespace hone::target
