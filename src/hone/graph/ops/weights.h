// graph/ops/weights.h - weights as the kernels of products read them.
#pragma once

#include "hone/graph/emit.h"

namespace hone::graph {

// An element of the weights in the type in which the result is computed: integers may be stored in
// fewer bits (narrow_weights).
[[nodiscard]] inline ir::Expr as_factor(EmitContext& c, const ir::Expr& weight) {
  const DType type = compute_type(c.result().dtype);
  return weight->type == type ? weight : ir::cast(type, weight);
}

}  // namespace hone::graph
