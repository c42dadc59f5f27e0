// tensor/max_rank.h - the largest number of dimensions that a value may have. NumPy has the same
// bound.
#pragma once

#include <cstddef>

namespace hone {

inline constexpr size_t kMaxRank = 64;

}  // namespace hone
