// tensor/max_rank.h - how many dimensions a value has at most. NumPy has the same bound; a loop
// nest, a schedule and a line of text per dimension of more would serve nobody.
#pragma once

#include <cstddef>

namespace hone {

inline constexpr size_t kMaxRank = 64;

}  // namespace hone
