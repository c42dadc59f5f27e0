// learn/torch/guarded.h - exceptions as messages, at the border of this library.
#pragma once

#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>

#include "hone/cost/net/torch_api.h"

namespace hone::learn::torch_module {

// Returns f(), or kHoneTorchFailed with what was thrown as a message. Of an exception of libtorch
// it is the text without the place where it was thrown.
template <typename F>
int32_t guarded(char* message, int64_t size, const F& f) {
  try {
    return f();
  } catch (const c10::Error& e) {
    std::snprintf(message, static_cast<size_t>(size), "%s", e.what_without_backtrace());
  } catch (const std::exception& e) {
    std::snprintf(message, static_cast<size_t>(size), "%s", e.what());
  }
  return kHoneTorchFailed;
}

}  // namespace hone::learn::torch_module
