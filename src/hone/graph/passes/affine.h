// graph/passes/affine.h - folds y = x * scale + shift per channel into the constant weights of a
// convolution or matrix product before or after it.
#pragma once

#include "hone/graph/passes/rewrite.h"

namespace hone::graph {

struct Affine {
  std::vector<double> scale, shift;
  [[nodiscard]] bool shifts() const;
};

// The new weights and bias of a product.
struct Weights {
  Tensor weight;
  std::optional<Tensor> bias;
};

// Returns whether the node is a Conv, Gemm or MatMul whose weights are constant and used only by
// it.
[[nodiscard]] bool has_weights(const RewriteSite& site, const Node& node);
// Returns the dimension of its result, or of its data, along which channels are.
[[nodiscard]] size_t channel_dimension(const Graph& graph, const Node& product, ValueId value);
// Both return the product's weights if each channel of its result, or of its data, is also scaled
// and shifted; nullopt if weights cannot express that.
[[nodiscard]] std::optional<Weights> scaled_after(const RewriteSite& site, const Node& product,
                                                  const Affine& affine);
[[nodiscard]] std::optional<Weights> scaled_before(const RewriteSite& site, const Node& product,
                                                   const Affine& affine);
// Replaces the node at the site by `product` with other data and weights.
[[nodiscard]] Status replace_by_product(const RewriteSite& site, const Node& product, ValueId data,
                                        Weights weights);

}  // namespace hone::graph
