// session/limited_model_testing.h - a model whose sums and results both end at a size of the run.
#pragma once

#include <string>

#include "hone/graph/test_model.h"

namespace hone {

// Returns a model without outputs that computes one head of attention of all rows of the input
// x[rows, width] to all, as y. The extent `rows` is open.
inline graph::TestModel self_attention_nodes(const std::string& rows, int64_t width, Rng& rng) {
  graph::TestModel model;
  model.open_input("x", {rows, std::to_string(width)});
  for (const char* w : {"wq", "wk", "wv"})
    model.constant(w, graph::random_tensor({width, width}, rng));
  model.node("MatMul", {"x", "wq"}, {"q"})
      .node("MatMul", {"x", "wk"}, {"k"})
      .node("MatMul", {"x", "wv"}, {"v"})
      .node("Transpose", {"k"}, {"kt"}, {{"perm", Shape{1, 0}}})
      .node("MatMul", {"q", "kt"}, {"s"})
      .node("Softmax", {"s"}, {"p"}, {{"axis", int64_t{-1}}})
      .node("MatMul", {"p", "v"}, {"o"})
      .node("Relu", {"o"}, {"y"});
  return model;
}
// Returns the same model with the output y.
inline graph::TestModel self_attention(const std::string& rows, int64_t width, Rng& rng) {
  graph::TestModel model = self_attention_nodes(rows, width, rng);
  model.output("y");
  return model;
}

}  // namespace hone
