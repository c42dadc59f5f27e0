#include "hone/graph/known_elements.h"

#include <algorithm>
#include <optional>

#include "hone/graph/integer_at.h"

namespace hone::graph {
namespace {

constexpr int kMostSteps = 32;  // operators between an element and the number that it is
// Elements that are looked at for one node: the index of a Gather has elements of its own to find.
constexpr int kMostFinds = 1000;

bool keeps_elements(std::string_view type) {
  return type == "Identity" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze";
}

class Elements {
 public:
  Elements(const Graph& graph, const std::vector<Node>& nodes) : graph_(graph), nodes_(nodes) {}

  // Returns element i of a value, counted in the order of all of them.
  [[nodiscard]] std::optional<int64_t> find(ValueId id, int64_t i, int steps = kMostSteps) {
    const Value& value = graph_.value(id);
    if (i < 0 || i >= num_elements(value.shape) || ++finds_ > kMostFinds) return std::nullopt;
    if (value.constant) return integer_at(*value.constant, i);
    const auto made = std::find_if(nodes_.rbegin(), nodes_.rend(), [&](const Node& node) {
      return std::count(node.outputs.begin(), node.outputs.end(), id) > 0;
    });
    if (made == nodes_.rend() || steps == 0) return std::nullopt;
    return result_of(*made, i, steps - 1);
  }

  [[nodiscard]] std::optional<int64_t> result_of(const Node& node, int64_t i, int steps) {
    if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs.size() != 1)
      return std::nullopt;
    const ValueId from = node.inputs[0];
    if (keeps_elements(node.type)) return find(from, i, steps);
    if (graph_.value(from).shape.size() != 1) return std::nullopt;
    if (node.type == "Concat") return part_of(node, i, steps);
    std::optional<int64_t> place;
    if (node.type == "Gather") place = find(node.inputs[1], i, steps);
    if (node.type == "Slice") place = sliced_from(node, i, steps);
    if (!place) return std::nullopt;
    return find(from, *place < 0 ? *place + graph_.value(from).shape[0] : *place, steps);
  }

 private:
  [[nodiscard]] std::optional<int64_t> part_of(const Node& concat, int64_t i, int steps) {
    for (const ValueId in : concat.inputs) {
      const int64_t count = num_elements(graph_.value(in).shape);
      if (i < count) return find(in, i, steps);
      i -= count;
    }
    return std::nullopt;
  }

  // Returns where element i of a slice of a vector lies in the vector.
  [[nodiscard]] std::optional<int64_t> sliced_from(const Node& slice, int64_t i, int steps) {
    constexpr size_t kStarts = 1, kSteps = 4;
    if (!slice.has_input(kStarts)) return std::nullopt;
    const std::optional<int64_t> start = find(slice.inputs[kStarts], 0, steps);
    if (!start || (slice.has_input(kSteps) && find(slice.inputs[kSteps], 0, steps) != 1))
      return std::nullopt;
    const int64_t count = graph_.value(slice.inputs[0]).shape[0];
    return std::max<int64_t>(*start < 0 ? *start + count : *start, 0) + i;
  }

  const Graph& graph_;
  const std::vector<Node>& nodes_;
  int finds_ = 0;
};

}  // namespace

void choose_known_elements(Graph& graph, const Node& node, const std::vector<Node>& nodes) {
  if (node.outputs.size() != 1 || node.outputs[0] == kNoValue) return;
  const Value& value = graph.value(node.outputs[0]);
  if (value.constant || !value.upper || value.dtype != DType::kI64) return;
  Tensor found(DType::kI64, value.shape);
  Elements elements(graph, nodes);
  for (int64_t i = 0; i < found.size(); ++i) {
    const std::optional<int64_t> element = elements.result_of(node, i, kMostSteps);
    if (!element) return;
    found.as<int64_t>()[static_cast<size_t>(i)] = *element;
  }
  graph.value(node.outputs[0]).constant = std::move(found);
}

}  // namespace hone::graph
