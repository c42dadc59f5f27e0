// graph/ops/window.h - the geometry that convolutions and pooling share: kernel, strides, padding
// and the resulting extents, from attributes of which most may be missing.
#pragma once

#include "hone/graph/op.h"

namespace hone::graph {

struct Window {
  Shape input, kernel, stride, dilation, pad_low, pad_high, output;  // per spatial dimension
  [[nodiscard]] size_t rank() const { return kernel.size(); }
  // Returns how far the last window reaches beyond the end of the input.
  [[nodiscard]] int64_t reach_high(size_t d) const {
    return (output[d] - 1) * stride[d] - pad_low[d] + (kernel[d] - 1) * dilation[d] -
           (input[d] - 1);
  }
};

// Makes the window. `input` is the shape of the data (N, C, spatial...), and `kernel` has the
// spatial extents of the weights, or is empty if only the attribute has them.
[[nodiscard]] Result<Window> make_window(const Attributes& attributes, const Shape& input,
                                         Shape kernel);
// Returns the window of a node whose shapes were inferred and which is therefore valid.
[[nodiscard]] Window window_of(const Graph& graph, const Node& node);
[[nodiscard]] Padding window_padding(const Window& window, size_t rank);
// Returns the role names of the result's dimensions: n, channel, then od, oh, ow.
[[nodiscard]] std::vector<std::string> window_roles(size_t spatial, const char* channel);
[[nodiscard]] std::vector<std::string> spatial_names(size_t spatial, const char* prefix);

// The attributes of a convolution, as Op::attributes names them.
inline constexpr std::string_view kConvolutionAttributes =
    "auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is";
// Adds a convolution of this type that has the attributes of the context's node. A bias of kNoValue
// is none.
[[nodiscard]] ValueId add_convolution(ExpandContext& c, const char* type, ValueId data,
                                      ValueId weights, ValueId bias);

}  // namespace hone::graph
