// codegen/llvm/survive_crash.h - a crash of the compiler costs one candidate, not the tuner that
// tries thousands of them. What the crash left behind is lost: memory, and locks if it held any.
#pragma once

#include <functional>

#include "hone/base/status.h"

namespace hone::codegen {

// `work`'s answer, or an error if it ended in an abort or a bad memory access. From any thread.
// The first call installs handlers for those signals; anywhere else they kill as before.
[[nodiscard]] Status survive_crash(const std::function<Status()>& work);

}  // namespace hone::codegen
