// random_inputs.h - draws seeded random values for a model's inputs, in ranges that suit the model:
// inputs that it uses as indices are valid indices.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/tensor/tensor.h"

namespace hone {

namespace graph {
struct Graph;
}

// Returns normal values for floats, 0 or 1 for integers and booleans.
[[nodiscard]] Tensor random_input(DType dtype, const Shape& shape, uint64_t seed);

// The distribution from which the floats of an input are drawn.
enum class Draw : uint8_t {
  kNormal,      // as in random_input()
  kMagnitudes,  // normal, each multiplied by a power of ten with an exponent from -2 to 1
  kPositive,    // uniform in [0, 1)
};
inline constexpr Draw kDraws[] = {Draw::kNormal, Draw::kMagnitudes, Draw::kPositive};

// The range of the integers of an input, including both ends.
struct IntegerRange {
  int64_t low = 0, high = 1;
};
// Returns a range per input of the graph as imported: all positions of an axis if the input is an
// index along it; all values of the type for bytes that are no index; else 0 and 1, as for a mask.
[[nodiscard]] std::vector<IntegerRange> integer_ranges(const graph::Graph& graph);

// Returns one tensor per input of the graph.
[[nodiscard]] std::vector<Tensor> draw_inputs(const graph::Graph& graph,
                                              const std::vector<IntegerRange>& ranges, Draw draw,
                                              uint64_t seed);

}  // namespace hone
