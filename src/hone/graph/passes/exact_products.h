// graph/passes/exact_products.h - products of small integers in float32, which computes them
// exactly.
#pragma once

#include "hone/graph/graph.h"

namespace hone::graph {

// Replaces MatMul of 32-bit integers by constant weights of 8 or 16 bits (narrow_weights) where the
// magnitudes of all terms of a sum add up to 2^24 at most.
void make_products_exact(Graph& graph);

}  // namespace hone::graph
