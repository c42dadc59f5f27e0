// cost/inputs/operator_tag.h - the kind of operator that a statement belongs to: ATFormer's ten
// kinds, for our stages.
#pragma once

#include <array>

#include "hone/compute/dag.h"

namespace hone::cost {

enum class OperatorTag : uint8_t {
  kMax,  // maximum of two values, or along an axis: activations, pooling
  kMin,
  kAdd,        // sum of two values: bias, residual
  kConv,       // sum of a convolution
  kWinograd,   // a stage of Winograd's algorithm
  kDepthwise,  // sum of a depthwise convolution
  kDense,      // any other sum of products
  kSoftmax,    // softmax and attention
  kCompute,    // any other pointwise value
  kReduce,     // any other reduction: a mean, a normalisation's sums
};
inline constexpr size_t kNumTags = 10;
[[nodiscard]] const std::array<std::string_view, kNumTags>& tag_names();

// Returns the tag. `winograd` tells whether the stage came from a convolution that this algorithm
// computes.
[[nodiscard]] OperatorTag tag_of(const compute::Stage& stage, bool winograd = false);

}  // namespace hone::cost
