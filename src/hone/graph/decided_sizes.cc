#include "hone/graph/decided_sizes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "hone/graph/integer_at.h"
#include "hone/graph/known_elements.h"

namespace hone::graph {
namespace {

constexpr int64_t kMostElements = 16;  // of a value that may be a shape
// The most of a size, so that its product with a row does not overflow.
constexpr int64_t kMost = int64_t{1} << 40;

bool may_be_shape(const Graph& graph, ValueId id) {
  if (id == kNoValue) return false;
  const Value& value = graph.value(id);
  return value.dtype == DType::kI64 && !value.constant && value.shape.size() <= 1 &&
         num_elements(value.shape) >= 1 && num_elements(value.shape) <= kMostElements;
}

// Returns where an element of a value lies in its buffer.
std::optional<DecidedPlace> place_of(const Graph& graph, ElementOf at) {
  const Storage& storage = graph.value(at.value).storage;
  if (storage.buffer < 0) return std::nullopt;
  const Buffer& buffer = graph.buffers[static_cast<size_t>(storage.buffer)];
  if (buffer.kind != Buffer::Kind::kArena || buffer.dtype != DType::kI64 || buffer.has_border() ||
      buffer.shape.size() > 1 || storage.extent.size() > 1)
    return std::nullopt;
  DecidedPlace place{storage.buffer, 0};
  if (!storage.extent.empty() && !storage.offset.empty())
    place.element = storage.offset[0] + at.element * storage.step[0];
  const bool is_inside = place.element >= 0 && place.element < num_elements(buffer.shape);
  return is_inside ? std::optional(place) : std::nullopt;
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {}

  std::vector<DecidedSize> run() {
    for (const Node& node : graph_.nodes) {
      if (node.type == "Less" && node.inputs.size() == 2) add_read(node.inputs[1]);
      if (node.type == "hone.Compact" && node.inputs.size() == 2) add_read(node.inputs[1]);
      if (node.outputs.size() == 1 && may_be_shape(graph_, node.outputs[0])) follow(node);
    }
    for (size_t id = 0; !order_.empty() && id < graph_.values.size(); ++id)
      add_places(static_cast<ValueId>(id));
    std::vector<DecidedSize> sizes;
    for (const ElementOf& origin : order_) {
      Found& found = found_.at(origin);
      if (found.most && *found.most >= 0 && *found.most <= kMost && !found.places.empty())
        sizes.push_back({*found.most, std::move(found.places)});
    }
    return sizes;
  }

 private:
  struct Found {
    std::optional<int64_t> most;
    std::vector<DecidedPlace> places;
  };

  // Returns the element that this one was moved from; nodes are in topological order.
  [[nodiscard]] ElementOf origin(ElementOf at) const {
    const auto it = origins_.find(at);
    return it == origins_.end() ? at : it->second;
  }

  void follow(const Node& node) {
    const ValueId made = node.outputs[0];
    for (int64_t i = 0; i < num_elements(graph_.value(made).shape); ++i) {
      if (number_of(graph_, {made, i})) continue;
      const auto from = moved_from(graph_, graph_.nodes, node, i);
      const bool is_in = from && from->element >= 0 &&
                         from->element < num_elements(graph_.value(from->value).shape);
      if (is_in) origins_[{made, i}] = origin(*from);
    }
  }

  void add_read(ValueId id) {
    if (!may_be_shape(graph_, id)) return;
    for (int64_t i = 0; i < num_elements(graph_.value(id).shape); ++i) {
      const ElementOf from = origin({id, i});
      if (number_of(graph_, from)) continue;
      if (found_.try_emplace(from).second) order_.push_back(from);
    }
  }

  void add_places(ValueId id) {
    if (!may_be_shape(graph_, id)) return;
    const Value& value = graph_.value(id);
    for (int64_t i = 0; i < num_elements(value.shape); ++i) {
      const auto it = found_.find(origin({id, i}));
      if (it == found_.end()) continue;
      Found& found = it->second;
      if (value.upper) {
        const int64_t most = integer_at(*value.upper, i);
        found.most = found.most ? std::min(*found.most, most) : most;
      }
      if (const auto place = place_of(graph_, {id, i})) found.places.push_back(*place);
    }
  }

  const Graph& graph_;
  std::map<ElementOf, ElementOf> origins_;  // of elements that nodes move
  std::map<ElementOf, Found> found_;
  std::vector<ElementOf> order_;  // the keys as they were found
};

}  // namespace

std::vector<DecidedSize> find_decided_sizes(const Graph& graph) { return Finder(graph).run(); }

}  // namespace hone::graph
