// random_inputs.h - seeded random values for a model's inputs, in the ranges that the model asks
// for: numbers that it takes as indices are indices.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/tensor/tensor.h"

namespace hone {

namespace graph {
struct Graph;
}

// Normal values for floats, 0 or 1 for integers and booleans.
[[nodiscard]] Tensor random_input(DType dtype, const Shape& shape, uint64_t seed);

// What floats of an input are drawn from.
enum class Draw : uint8_t {
  kNormal,      // as random_input
  kMagnitudes,  // normal, each times a power of ten of -2 to 1
  kPositive,    // uniform in [0, 1)
};
inline constexpr Draw kDraws[] = {Draw::kNormal, Draw::kMagnitudes, Draw::kPositive};

// Integers of an input are from `low` to `high`.
struct IntegerRange {
  int64_t low = 0, high = 1;
};
// Per input of the graph as imported: all of an axis where the input is an index along it, all of
// the type for bytes that are none, else 0 or 1: a mask.
[[nodiscard]] std::vector<IntegerRange> integer_ranges(const graph::Graph& graph);

// One tensor per input of the graph.
[[nodiscard]] std::vector<Tensor> draw_inputs(const graph::Graph& graph,
                                              const std::vector<IntegerRange>& ranges, Draw draw,
                                              uint64_t seed);

}  // namespace hone
