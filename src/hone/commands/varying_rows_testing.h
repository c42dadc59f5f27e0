// commands/varying_rows_testing.h - a model of which the number of rows varies.
#pragma once

#include "hone/graph/test_model.h"

namespace hone::testing {

// Returns a product of 1 to `most` rows of 96 elements with weights of its own, for `columns`
// results each.
inline graph::Graph product_of_rows(int64_t most, int64_t columns) {
  graph::TestModel model;
  Rng rng(1);
  model.input("x", {most, 96}).input("hone.sizes", {graph::kMaxForms}, DType::kI64);
  model.constant("w", graph::random_tensor({96, columns}, rng))
      .node("MatMul", {"x", "w"}, {"y"})
      .output("y");
  graph::Graph graph = model.graph();
  graph::Varying& varying = graph.varying;
  varying.symbols = {{"rows", 1, most}};
  varying.forms = {{.terms = {{1, {0}}}}};
  varying.inputs = {{{{0, most}}, {{graph::kNoForm, 96}}}};
  varying.outputs = {{{{0, most}}, {{graph::kNoForm, columns}}}};
  varying.sizes = graph.inputs.back();
  return graph;
}

}  // namespace hone::testing
