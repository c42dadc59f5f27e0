// graph/size_probes.h - a model whose inputs vary, imported at some sizes of its ranges, and what
// that tells of each value: extents that follow from the symbols, and elements that do.
//
// The file's values have the same ids in all of these graphs. What a node of the file is replaced
// by makes new values; where it makes equally many at two sizes, they are each other's twins.
#pragma once

#include "hone/graph/graph.h"
#include "hone/graph/size_fit.h"

namespace hone::graph {

// The sizes of the inputs of a model whose shapes vary.
struct InputSizes {
  std::vector<SizeSymbol> symbols;
  std::map<std::string, std::vector<SizeForm>> inputs;  // the extents of those that vary, by name
  std::optional<SizeForm> batch;                        // that of Graph::rebatch, if it varies
};

struct SizeProbe {
  std::vector<int64_t> symbols;
  Graph graph;
  std::vector<ValueId> twins;  // by the ids of values of the largest graph; kNoValue: none
  std::vector<int> producers;  // by the ids of this graph; -1: none
  // By the ids of the largest graph: whether the node of the file that a value belongs to makes the
  // same values at this size.
  std::vector<bool> alike;
  [[nodiscard]] const Value* twin(ValueId id) const;
  [[nodiscard]] const Node* producer_of_twin(ValueId id) const;
};

// Returns "batch=8, seq=511".
[[nodiscard]] std::string to_text(const std::vector<SizeSymbol>& symbols,
                                  const std::vector<int64_t>& values);

// Returns whether an extent behind the second of an input varies, as those of images do.
[[nodiscard]] bool has_sides(const std::map<std::string, std::vector<SizeForm>>& inputs);

// kFew leaves out the consecutive values of sides, which are most of all.
enum class ProbeSizes { kFew, kAll };

// `raw` is the graph before shapes were inferred, with the largest shapes of its inputs; `ends` are
// those of the graph that was inferred from it (infer.h).
[[nodiscard]] Result<std::vector<SizeProbe>> make_probes(const Graph& raw,
                                                         const std::vector<size_t>& ends,
                                                         const InputSizes& sizes, ProbeSizes which);

// Gives the inputs of such a graph the shapes that they have where the symbols have these values.
void set_sizes(Graph& raw, const InputSizes& sizes, const std::vector<int64_t>& symbols);

// Returns whether the model is valid with the smallest sizes of all symbols.
[[nodiscard]] Status infer_smallest(const Graph& raw, const InputSizes& sizes);

}  // namespace hone::graph
