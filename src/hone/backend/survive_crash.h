// backend/survive_crash.h - turns a crash of the compiler into an error, so that it costs one
// candidate and not the tuner that tries thousands of them. Memory that the compiler held is lost,
// and locks stay locked.
#pragma once

#include <functional>

#include "hone/base/status.h"

namespace hone::backend {

// Returns the status of `work`, or an error if it ended in an abort or a bad memory access. It may
// be called from any thread. The first call installs handlers for those signals, which outside of
// `work` kill the process as before.
[[nodiscard]] Status survive_crash(const std::function<Status()>& work);

}  // namespace hone::backend
