// base/small_vector.h - a vector that holds up to kInside elements within itself, and on the heap
// if there are more.
#pragma once

#include <absl/container/inlined_vector.h>

namespace hone {

template <typename T, size_t kInside>
using SmallVector = absl::InlinedVector<T, kInside>;

}  // namespace hone
