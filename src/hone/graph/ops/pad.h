// graph/ops/pad.h - reads which dimensions Pad and CenterCropPad change, and by how many elements.
#pragma once

#include <optional>
#include <vector>

#include "hone/graph/op.h"

namespace hone::graph {

// The numbers of elements that are added at both ends of each dimension, or taken away if negative.
struct Pads {
  Shape low, high;
  [[nodiscard]] bool any(size_t d) const { return low[d] != 0 || high[d] != 0; }
};

// Returns the dimensions of operand 0 that a list of axes names; all of them without a list.
[[nodiscard]] Result<std::vector<size_t>> named_dims(
    const InferContext& c, const std::optional<std::vector<int64_t>>& axes);
// Likewise, those that the attribute `axes` names.
[[nodiscard]] Result<std::vector<size_t>> named_dims(const InferContext& c);
// Returns the dimensions to which the numbers of a Pad belong.
[[nodiscard]] Result<std::vector<size_t>> padded_dims(const InferContext& c);
// Returns the pads of a Pad, which have to be known.
[[nodiscard]] Result<Pads> pads_of(const InferContext& c);

}  // namespace hone::graph
