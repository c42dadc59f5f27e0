// graph/size_windows.h - functions that rules for shapes that vary share, of operators that read
// windows.
#pragma once

#include "hone/graph/size_follower.h"

namespace hone::graph {

inline constexpr size_t kFirstSide = 2;  // dimensions behind the batch and the channels

// The sides of operand 0, and whether one of them varies.
[[nodiscard]] std::vector<size_t> sides_of(const SizeRule& rule);
[[nodiscard]] bool sides_vary(const SizeRule& rule);

// Gives the results their parts: the batch is that of operand 0, and sides follow from its sides.
[[nodiscard]] Status set_window_parts(SizeRule& rule);

}  // namespace hone::graph
