// base/cancel.h - the flag that Ctrl-C sets. Long work reads it now and then, and gives up when it
// is set.
#pragma once

#include <atomic>

#include "hone/base/status.h"

namespace hone {

// Returns whether the flag is set. `flag` may be null where nobody can interrupt.
[[nodiscard]] inline bool is_cancelled(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}
[[nodiscard]] inline Status check_cancelled(const std::atomic<bool>* flag) {
  return is_cancelled(flag) ? Status(Code::kCancelled, "interrupted; nothing was written")
                            : Status();
}

}  // namespace hone
