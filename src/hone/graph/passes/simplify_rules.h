// graph/passes/simplify_rules.h - the rules of simplify_algebra(), grouped by what they simplify.
#pragma once

#include "hone/graph/passes/rewrite.h"

namespace hone::graph {

// These merge chains of transposes, reshapes, slices and casts.
[[nodiscard]] std::span<const Rule> movement_rules();
// These handle neutral constants, powers, and constants that meet.
[[nodiscard]] std::span<const Rule> scalar_rules();
// These move transposes to products and through elementwise operators.
[[nodiscard]] std::span<const Rule> transpose_rules();

// These move reshapes behind elementwise operators.
[[nodiscard]] std::span<const Rule> reshape_rules();

// The part of a whole that a slice of one dimension takes.
struct Part {
  size_t axis;
  int64_t start, extent;
};
// If a part of `whole` is given the shape `shape`, the whole may be reshaped first: this is the
// shape of the whole then, and the part of it. The result is nullopt if the part would have other
// elements.
struct ReshapedPart {
  Shape whole;
  Part part;
};
[[nodiscard]] std::optional<ReshapedPart> reshape_before_slice(const Shape& whole, const Part& part,
                                                               const Shape& shape);

}  // namespace hone::graph
