#include "hone/graph/aggregates.h"

#include <algorithm>
#include <array>

#include "hone/graph/node_names.h"

namespace hone::graph {

thread_local AggregateScope* AggregateScope::current = nullptr;

AggregateScope::AggregateScope(const Graph& graph) : graph_(&graph), around_(current) {
  current = this;
}
AggregateScope::~AggregateScope() { current = around_; }

const Aggregate* aggregate_of(ValueId id) {
  if (AggregateScope::current == nullptr) return nullptr;
  const auto& aggregates = AggregateScope::current->aggregates_;
  const auto it = aggregates.find(id);
  return it == aggregates.end() ? nullptr : &it->second;
}

void set_aggregate(ValueId id, Aggregate aggregate) {
  HONE_ASSERT(AggregateScope::current != nullptr, "aggregates are made while shapes are inferred");
  AggregateScope::current->aggregates_[id] = std::move(aggregate);
}

ValueId add_aggregate(ExpandContext& c, Aggregate aggregate) {
  const ValueId made = c.graph().add_value("stand_in", aggregate.dtype, {});
  set_aggregate(made, std::move(aggregate));
  return made;
}

std::optional<Aggregate> in_parts(ExpandContext& c, Aggregate aggregate) {
  const ValueId rows = aggregate.stacked;
  if (rows == kNoValue) return aggregate;
  const int64_t count = c.shape_of(rows)[0];
  if (c.extents_of(rows) != kNoValue || c.graph().keeps_loops || count > kMostParts)
    return std::nullopt;
  for (int64_t k = 0; k < count; ++k) {
    const ValueId place = c.scalar(DType::kI64, static_cast<double>(k));
    aggregate.parts.push_back(c.add("Gather", {rows, place}));
  }
  aggregate.stacked = kNoValue;
  return aggregate;
}

namespace {

bool takes_aggregates(std::string_view type) {
  constexpr std::array<std::string_view, 14> kTypes = {"ConcatFromSequence",
                                                       "If",
                                                       "Loop",
                                                       "Optional",
                                                       "OptionalGetElement",
                                                       "OptionalHasElement",
                                                       "Scan",
                                                       "SequenceAt",
                                                       "SequenceConstruct",
                                                       "SequenceErase",
                                                       "SequenceInsert",
                                                       "SequenceLength",
                                                       "SequenceMap",
                                                       "hone.Choose"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

}  // namespace

Result<bool> follow_aggregates(const Graph& graph, const Node& node) {
  const AggregateScope* current = AggregateScope::current;
  if (current == nullptr || current->graph_ != &graph || takes_aggregates(node.type)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Aggregate* found = node.has_input(i) ? aggregate_of(node.inputs[i]) : nullptr;
    if (found == nullptr) continue;
    if (node.type != "Identity")
      return invalid("{}: {}: operand {} ('{}') is {}, expected a tensor", graph.file,
                     name_and_type(node), i, graph.value(node.inputs[i]).name,
                     found->optional ? "an optional value" : "a sequence");
    set_aggregate(node.outputs[0], *found);
    return true;
  }
  return false;
}

Status check_outputs(const Graph& graph) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Aggregate* found = aggregate_of(graph.outputs[i]);
    if (found == nullptr) continue;
    return error(
        Code::kUnsupported, "{}: the output '{}' is {}, expected a tensor: let the model end in {}",
        graph.file, graph.output_names[i], found->optional ? "an optional value" : "a sequence",
        found->optional ? "OptionalGetElement" : "ConcatFromSequence, or in a SequenceAt for each");
  }
  return ok_status();
}

}  // namespace hone::graph
