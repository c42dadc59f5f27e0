#include <cmath>

#include "hone/graph/passes/affine.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

std::optional<Affine> constant_affine(const Graph& graph, const Node& node) {
  const Tensor* parameter[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto& constant = graph.value(node.inputs[i + 1]).constant;
    if (!constant) return std::nullopt;
    parameter[i] = &*constant;
  }
  const double epsilon = node.attributes.number("epsilon", 1e-5f);
  Affine affine;
  for (int64_t c = 0; c < parameter[0]->size(); ++c) {
    const double scale = parameter[0]->at(c) / std::sqrt(parameter[3]->at(c) + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(parameter[1]->at(c) - parameter[2]->at(c) * scale);
  }
  return affine;
}

// Makes elementwise operators with constants of shape [C, 1, 1].
ValueId mul_and_add(ExpandContext& c, ValueId x, const Affine& affine) {
  Shape shape(c.shape_of(x).size() - 1, 1);
  shape[0] = static_cast<int64_t>(affine.scale.size());
  Tensor scale(c.dtype_of(x), shape), shift(c.dtype_of(x), shape);
  for (int64_t i = 0; i < scale.size(); ++i) {
    scale.set(i, affine.scale[static_cast<size_t>(i)]);
    shift.set(i, affine.shift[static_cast<size_t>(i)]);
  }
  return c.binary("Add", c.binary("Mul", x, c.constant(std::move(scale))),
                  c.constant(std::move(shift)));
}

Result<bool> batch_norm(const RewriteSite& site) {
  if (site.node().type != "BatchNormalization") return false;
  const auto affine = constant_affine(site.graph, site.node());
  if (!affine) return false;
  const ValueId x = site.node().inputs[0];
  const Node* product = site.sole_maker(x);
  // The last dimension of a matrix product is dimension 1, as a convolution's channels are.
  if (product != nullptr && has_weights(site, *product) &&
      channel_dimension(site.graph, *product, x) == 1) {
    if (auto weights = scaled_after(site, *product, *affine)) {
      HONE_RETURN_IF_ERROR(
          replace_by_product(site, *product, product->inputs[0], std::move(*weights)));
      return true;
    }
  }
  HONE_RETURN_IF_ERROR(
      replace_node(site, [&](ExpandContext& c) { return mul_and_add(c, x, *affine); }));
  return true;
}

}  // namespace

Status fold_batch_norm(Graph& graph) {
  static constexpr Rule kRules[] = {{"batch_norm", batch_norm}};
  return rewrite(graph, kRules);
}

}  // namespace hone::graph
