// cost/inputs/operator_tag.h - which kind of operator a statement belongs to: ATFormer's ten, of
// our stages.
#pragma once

#include <array>

#include "hone/compute/dag.h"

namespace hone::cost {

enum class OperatorTag : uint8_t {
  kMax,  // of two values or along an axis: activations, pooling
  kMin,
  kAdd,        // of two values: bias, residual
  kConv,       // a convolution's sum
  kWinograd,   // a stage of Winograd's algorithm
  kDepthwise,  // a depthwise convolution's sum
  kDense,      // any other sum of products
  kSoftmax,    // softmax and attention
  kCompute,    // any other value of a point
  kReduce,     // any other reduction: a mean, a normalisation's sums
};
inline constexpr size_t kNumTags = 10;
[[nodiscard]] const std::array<std::string_view, kNumTags>& tag_names();

// `winograd`: whether the stage came from a convolution that is done by that algorithm.
[[nodiscard]] OperatorTag tag_of(const compute::Stage& stage, bool winograd = false);

}  // namespace hone::cost
