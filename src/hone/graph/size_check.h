// graph/size_check.h - for tests: compares a model imported for ranges with the model at one size.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hone/graph/import_onnx.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/size_probes.h"
#include "hone/graph/size_testing.h"
#include "hone/graph/size_values.h"
#include "hone/graph/test_model.h"

namespace hone::graph {

using Ranges = std::map<std::string, ShapeRange>;
using Attrs = AttributeList;

inline Result<Graph> import_at(const TestModel& model, const ImportOptions& options) {
  const std::string bytes = model.bytes();
  return import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
}

inline Result<Graph> import_ranges(const TestModel& model, const Ranges& ranges) {
  return import_at(model, {.ranges = ranges, .open_ranges = true});
}

// Runs the graph without the passes that may be left out, if it has loops or shapes that depend on
// data, which the oracle of single nodes does not know.
inline std::vector<Tensor> run_without_passes(const Graph& graph,
                                              const std::vector<Tensor>& inputs) {
  const bool has_loops = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                     [](const Node& node) { return node.loop != nullptr; });
  const bool by_data = std::any_of(graph.values.begin(), graph.values.end(),
                                   [](const Value& value) { return value.extents != kNoValue; });
  return has_loops || by_data ? run_optimized(graph, inputs, optional_pass_names())
                              : run_plainly(graph, inputs);
}

// Compares the graph of the ranges, whose operands have garbage beyond these sizes, with the model
// imported for these sizes alone. `numbers` makes the elements of inputs.
struct SizeCheck {
  const TestModel& model;
  const Graph& graph;
  std::function<double(Rng&)> numbers = [](Rng& rng) { return 2 * rng.uniform() - 1; };
  int64_t max_turns = kMaxTurns;  // Graph::max_turns

  void at(const std::vector<int64_t>& symbols, bool optimized) const {
    SCOPED_TRACE(to_text(graph.varying.symbols, symbols));
    const std::vector<int64_t> sizes = sizes_of(graph.varying, symbols);
    Rng rng(3);
    ImportOptions options{.max_turns = max_turns};
    std::vector<Tensor> small, large;
    for (size_t i = 0; i < graph.varying.inputs.size(); ++i) {
      const Value& input = graph.value(graph.inputs[i]);
      Tensor tensor(input.dtype, shape_of(graph.varying.inputs[i], input.shape, sizes));
      for (int64_t k = 0; k < tensor.size(); ++k) tensor.set(k, numbers(rng));
      options.shapes[input.name] = tensor.shape();
      large.push_back(enlarged(tensor, input.shape));
      small.push_back(std::move(tensor));
    }
    large.push_back(sizes_at(graph, symbols));
    const Result<Graph> alone = import_at(model, options);
    ASSERT_TRUE(alone.ok()) << alone.status().message();
    const auto expected = run_without_passes(*alone, small);
    const auto actual = optimized ? run_optimized(graph, large) : run_without_passes(graph, large);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t o = 0; o < actual.size(); ++o) {
      ASSERT_EQ(shape_of(graph.varying.outputs[o], actual[o].shape(), sizes), expected[o].shape());
      double most = 0, difference = 0;
      const Boxes boxes = boxes_of(graph.varying.outputs[o], actual[o].shape(), sizes);
      visit_box(boxes.box, boxes.whole, [&](int64_t from, int64_t to) {
        most = std::max(most, std::abs(expected[o].at(from)));
        const double off = std::abs(expected[o].at(from) - actual[o].at(to));
        difference = std::isnan(off) ? 1e30 : std::max(difference, off);
      });
      EXPECT_LE(difference, 1e-5 * std::max(most, 1e-3)) << "output " << o;
    }
  }
};

// Imports the model for these ranges and compares it with itself at all of these symbols.
inline void expect_right(
    const TestModel& model, const Ranges& ranges, const std::vector<std::vector<int64_t>>& symbols,
    const std::function<double(Rng&)>& numbers = [](Rng& rng) { return 2 * rng.uniform() - 1; }) {
  const auto graph = import_ranges(model, ranges);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  for (const auto& at : symbols) SizeCheck{model, *graph, numbers}.at(at, &at == &symbols.back());
}

// Half of the tokens and of the keys are 1, others 0.
inline double zero_or_one(Rng& rng) { return rng.chance(0.7) ? 1 : 0; }

}  // namespace hone::graph
