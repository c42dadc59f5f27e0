// graph/aggregates.h - sequences and optional values of ONNX. Only the inference of an imported
// model knows them: their parts are values of their own, which the operators on them name, so that
// neither passes nor tasks see one. They are kept beside the graph while infer_shapes() runs.
#pragma once

#include <map>
#include <optional>

#include "hone/graph/expand.h"

namespace hone::graph {

struct Aggregate {
  bool optional = false;       // else a sequence
  DType dtype = DType::kF32;   // type of the tensors of a sequence, which may have none
  std::vector<ValueId> parts;  // an optional value has one or none
  ValueId stacked = kNoValue;  // in place of parts: a tensor of which each row is one
};

// The aggregates of the graph whose shapes this thread infers, from the constructor on to the
// destructor. Values of other graphs, as of the body of a loop, are tensors meanwhile.
class AggregateScope {
 public:
  explicit AggregateScope(const Graph& graph);
  ~AggregateScope();
  AggregateScope(const AggregateScope&) = delete;
  AggregateScope& operator=(const AggregateScope&) = delete;

 private:
  friend const Aggregate* aggregate_of(ValueId id);
  friend void set_aggregate(ValueId id, Aggregate aggregate);
  friend Result<bool> follow_aggregates(const Graph& graph, const Node& node);
  static thread_local AggregateScope* current;
  const Graph* graph_;
  AggregateScope* around_;
  std::map<ValueId, Aggregate> aggregates_;
};

// Returns what a value holds; null for a tensor.
[[nodiscard]] const Aggregate* aggregate_of(ValueId id);
void set_aggregate(ValueId id, Aggregate aggregate);
// Makes a value that holds these parts; no node computes it.
[[nodiscard]] ValueId add_aggregate(ExpandContext& c, Aggregate aggregate);

// Returns an aggregate of which each part is a value. Parts that are rows become such values; it is
// nullopt if only a run knows how many they are, or if they are too many.
inline constexpr int64_t kMostParts = 10'000;
[[nodiscard]] std::optional<Aggregate> in_parts(ExpandContext& c, Aggregate aggregate);

// Gives the result of an Identity the parts of its operand, if that is an aggregate, and returns
// true. It is an error if another operator than those on aggregates has such an operand.
[[nodiscard]] Result<bool> follow_aggregates(const Graph& graph, const Node& node);
// Returns an error if an output of the model is no tensor.
[[nodiscard]] Status check_outputs(const Graph& graph);

}  // namespace hone::graph
