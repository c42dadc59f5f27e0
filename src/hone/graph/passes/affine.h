// graph/passes/affine.h - y = x * scale + shift per channel, taken into the constant weights of a
// convolution or matrix product before or after it.
#pragma once

#include "hone/graph/passes/rewrite.h"

namespace hone::graph {

struct Affine {
  std::vector<double> scale, shift;
  [[nodiscard]] bool shifts() const;
};

// What takes the place of a product's weights and bias.
struct Weights {
  Tensor weight;
  std::optional<Tensor> bias;
};

// Whether the node is a Conv, Gemm or MatMul with constant weights of its own.
[[nodiscard]] bool has_weights(const RewriteSite& site, const Node& node);
// The dimension of its result, or of its data, along which channels lie.
[[nodiscard]] size_t channel_dimension(const Graph& graph, const Node& product, ValueId value);
// Its weights when each channel of its result, or of its data, is scaled and shifted too; nullopt
// if they cannot say that.
[[nodiscard]] std::optional<Weights> scaled_after(const RewriteSite& site, const Node& product,
                                                  const Affine& affine);
[[nodiscard]] std::optional<Weights> scaled_before(const RewriteSite& site, const Node& product,
                                                   const Affine& affine);
// Puts `product`, with other data and weights, in the place of the node at the site.
[[nodiscard]] Status replace_by_product(const RewriteSite& site, const Node& product, ValueId data,
                                        Weights weights);

}  // namespace hone::graph
