// graph/ops/small_cast.h - conversions from and to the element types of hone/small_dtype.h as
// expressions of bits, which run on lanes like any other.
#pragma once

#include "hone/ir/expr.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {

// How a conversion to a float of 8 bits treats what it cannot hold (attributes of Cast).
struct SmallRounding {
  bool saturate = true;
  enum class Power : uint8_t { kUp, kDown, kNearest } power = Power::kUp;  // rounds f8e8m0
};

// Returns the value of an element of a small type as f32, or as i32 if it is an integer. `code` has
// the type that stored_type() names.
[[nodiscard]] ir::Expr from_small(DType dtype, const ir::Expr& code);
// Returns a number or bool as an element of a small type, in the type that stored_type() names.
// Floats are rounded once, to nearest even; to integers they are cut off and wrap.
[[nodiscard]] ir::Expr to_small(DType dtype, const ir::Expr& value, const SmallRounding& rounding);

}  // namespace hone::graph
