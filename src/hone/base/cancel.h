// base/cancel.h - long work looks now and then at a flag that Ctrl-C sets, and gives up.
#pragma once

#include <atomic>

#include "hone/base/status.h"

namespace hone {

// `flag` may be null: nobody can interrupt.
[[nodiscard]] inline bool is_cancelled(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}
[[nodiscard]] inline Status check_cancelled(const std::atomic<bool>* flag) {
  return is_cancelled(flag) ? Status(Code::kCancelled, "interrupted; nothing was written")
                            : Status();
}

}  // namespace hone
