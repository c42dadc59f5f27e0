// base/small_vector.h - a vector with room for a few elements inside itself: a handful needs no
// memory of its own, more move to the heap.
#pragma once

#include <absl/container/inlined_vector.h>

namespace hone {

template <typename T, size_t kInside>
using SmallVector = absl::InlinedVector<T, kInside>;

}  // namespace hone
