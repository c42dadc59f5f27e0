// naive_values.h - every value of a model as imported, from a naive run (internal to the facade).
// Of a value whose shape depends on data, the part that has a meaning.
#pragma once

#include <set>

#include "hone/graph/graph.h"
#include "hone/session/naive_run.h"

namespace hone {

struct NaiveValue {
  Tensor tensor;
  bool part = false;                  // of a larger shape
  const graph::Node* node = nullptr;  // what makes it; null: an input or a constant
};

// Called for inputs, constants that are outputs, and each result in the order of the nodes.
using OnNaiveValue = std::function<void(graph::ValueId, const NaiveValue&)>;
// Sees each result that is memory of its own before anything reads it, and may change it.
using ChangeResult = std::function<void(const graph::Node&, Tensor&)>;
[[nodiscard]] Status naive_values(const NaiveModel& model, const graph::Graph& graph,
                                  const std::vector<Tensor>& inputs, const OnNaiveValue& on_value,
                                  const ChangeResult& change = {});

// The first `part` of each dimension; or, of a dense result, as many elements from its start.
[[nodiscard]] Tensor cut(const Tensor& whole, const Shape& part, bool dense);
[[nodiscard]] bool fits(const Shape& part, const Shape& whole);
// Whether the part of a node's first result that has a meaning lies dense at its start.
[[nodiscard]] bool is_dense(const graph::Node* node);

}  // namespace hone
