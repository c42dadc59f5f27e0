// naive_values.h - computes every value of a model as imported by a naive run (internal). If the
// shape of a value depends on data, only the part that has a meaning is kept.
#pragma once

#include <set>

#include "hone/graph/graph.h"
#include "hone/session/naive_run.h"

namespace hone {

struct NaiveValue {
  Tensor tensor;
  bool part = false;                  // the value is a part of a larger shape
  const graph::Node* node = nullptr;  // node that computes it; null for an input or a constant
};

// Called for the inputs, for the constants that are outputs, and for each result in the order of
// the nodes.
using OnNaiveValue = std::function<void(graph::ValueId, const NaiveValue&)>;
// Called for each result that has memory of its own before anything reads it. It may change the
// result.
using ChangeResult = std::function<void(const graph::Node&, Tensor&)>;
[[nodiscard]] Status naive_values(const NaiveModel& model, const graph::Graph& graph,
                                  const std::vector<Tensor>& inputs, const OnNaiveValue& on_value,
                                  const ChangeResult& change = {});

// Returns the first `part` of each dimension. If the result is dense, its elements are the first
// ones in memory instead.
[[nodiscard]] Tensor cut(const Tensor& whole, const Shape& part, bool dense);
[[nodiscard]] bool fits(const Shape& part, const Shape& whole);
// Returns whether the part of a node's first result that has a meaning is contiguous at its start.
[[nodiscard]] bool is_dense(const graph::Node* node);

}  // namespace hone
