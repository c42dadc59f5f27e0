// graph/passes/simplify_rules.h - the rules of simplify_algebra(), by what they simplify.
#pragma once

#include "hone/graph/passes/rewrite.h"

namespace hone::graph {

// Chains of transposes, reshapes, slices and casts.
[[nodiscard]] std::span<const Rule> movement_rules();
// Neutral constants, powers, and constants that meet.
[[nodiscard]] std::span<const Rule> scalar_rules();
// Transposes at products and through elementwise operators.
[[nodiscard]] std::span<const Rule> transpose_rules();

// Reshapes before elementwise operators.
[[nodiscard]] std::span<const Rule> reshape_rules();

// The part of a whole that a slice of one dimension takes.
struct Part {
  size_t axis;
  int64_t start, extent;
};
// A part of `whole` that is then given `shape` may be taken after the whole is reshaped: the shape
// of the whole then, and the part of it; nullopt if the part's elements would be others.
struct ReshapedPart {
  Shape whole;
  Part part;
};
[[nodiscard]] std::optional<ReshapedPart> reshape_before_slice(const Shape& whole, const Part& part,
                                                               const Shape& shape);

}  // namespace hone::graph
