#include "hone/commands/check/naive_values.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "hone/graph/op.h"

namespace hone {
namespace {

using graph::kNoValue;
using graph::ValueId;

// Values of which the part beyond a shape that depends on data is undefined, while they don't say
// so themselves: only the Identity after them does.
std::set<ValueId> half_defined_values(const graph::Graph& graph) {
  std::set<ValueId> ids;
  for (const graph::Node& node : graph.nodes) {
    if (node.type == "Identity" && graph.value(node.outputs[0]).extents != kNoValue &&
        graph.value(node.inputs[0]).extents == kNoValue)
      ids.insert(node.inputs[0]);
  }
  return ids;
}

Shape shape_in(const Tensor& extents) {
  const auto values = extents.as<int64_t>();
  return {values.begin(), values.end()};
}

}  // namespace

Tensor cut(const Tensor& whole, const Shape& part, bool dense) {
  Tensor result(whole.dtype(), part);
  if (result.size() == 0) return result;
  const auto width = static_cast<size_t>(dtype_bytes(whole.dtype()));
  if (dense || part.empty()) {
    std::memcpy(result.data(), whole.data(), static_cast<size_t>(result.bytes()));
    return result;
  }
  const size_t row = static_cast<size_t>(part.back()) * width;
  for (int64_t r = 0; r < result.size() / part.back(); ++r) {
    int64_t rest = r, from = 0, below = whole.shape().back();
    for (size_t d = part.size() - 1; d-- > 0;) {
      from += rest % part[d] * below;
      rest /= part[d];
      below *= whole.shape()[d];
    }
    std::memcpy(static_cast<char*>(result.data()) + static_cast<size_t>(r) * row,
                static_cast<const char*>(whole.data()) + static_cast<size_t>(from) * width, row);
  }
  return result;
}

bool fits(const Shape& part, const Shape& whole) {
  return part.size() == whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin(), std::less_equal<>());
}

bool is_dense(const graph::Node* node) { return node != nullptr && node->type == "hone.Compact"; }

Status naive_values(const NaiveModel& model, const graph::Graph& graph,
                    const std::vector<Tensor>& inputs, const OnNaiveValue& on_value,
                    const ChangeResult& change) {
  std::map<ValueId, Tensor> shapes;  // extents of other values
  for (const graph::Value& value : graph.values) {
    if (value.extents != kNoValue) shapes.emplace(value.extents, Tensor());
  }
  // Outputs may be what no node makes.
  for (const ValueId id : graph.outputs) {
    if (graph.value(id).constant) on_value(id, {.tensor = *graph.value(id).constant});
  }
  for (size_t i = 0; i < inputs.size(); ++i) on_value(graph.inputs[i], {.tensor = inputs[i]});
  const std::set<ValueId> half_defined = half_defined_values(graph);
  const auto report = [&](ValueId id, const NaiveValue& value) {
    if (!half_defined.contains(id)) on_value(id, value);
  };
  NaiveValue dense;  // which waits for its shape, the second result
  return model.run(inputs, [&](const graph::Node& node, ValueId id, Tensor& tensor, bool made) {
    if (made && change) change(node, tensor);
    if (id == kNoValue) return;  // in a loop
    if (const auto shape = shapes.find(id); shape != shapes.end()) shape->second = tensor;
    if (is_dense(&node) && id == node.outputs[0]) {
      dense = {.tensor = tensor, .part = true, .node = &node};
      return;
    }
    if (is_dense(&node)) {
      dense.tensor = cut(dense.tensor, shape_in(tensor), true);
      report(node.outputs[0], dense);
      dense = {};
    }
    NaiveValue value{.tensor = tensor, .node = &node};
    if (const ValueId extents = graph.value(id).extents; extents != kNoValue) {
      const auto& constant = graph.value(extents).constant;
      const Tensor& actual = constant ? *constant : shapes.at(extents);
      if (actual.dtype() != DType::kI64)
        return;  // not computed yet: which part counts is not known
      value.part = true;
      value.tensor = cut(tensor, shape_in(actual), false);
    }
    report(id, value);
  });
}

}  // namespace hone
