#include "hone/graph/known_elements.h"

#include <algorithm>
#include <map>
#include <optional>

#include "hone/graph/integer_at.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

constexpr int kMostSteps = 32;  // operators between an element and the number that it is
// Elements that are looked at for one node: the index of a Gather has elements of its own to find.
constexpr int kMostFinds = 1000;

bool keeps_elements(std::string_view type) {
  return type == "Identity" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" ||
         type == "hone.Copy";
}

class Elements {
 public:
  Elements(const Graph& graph, const std::vector<Node>& nodes) : graph_(graph), nodes_(nodes) {}

  // See known_element().
  [[nodiscard]] std::optional<int64_t> find(ElementOf at, int steps = kMostSteps) {
    at = origin(at, steps);
    return is_in(at) ? number_of(at) : std::nullopt;
  }

  // Returns the element that this one was moved from, itself if nothing known moved it.
  [[nodiscard]] ElementOf origin(ElementOf at, int steps = kMostSteps) {
    while (steps-- > 0) {
      if (!is_in(at) || number_of(at) || ++finds_ > kMostFinds) return at;
      const Node* made = producer(at.value);
      const auto from = made != nullptr ? moved_from(*made, at.element, steps) : std::nullopt;
      if (!from) return at;
      at = *from;
    }
    return at;
  }

  [[nodiscard]] bool is_in(ElementOf at) const {
    return at.element >= 0 && at.element < num_elements(graph_.value(at.value).shape);
  }

  // Returns the number that an element of the value is by itself.
  [[nodiscard]] std::optional<int64_t> number_of(ElementOf at) const {
    const Value& value = graph_.value(at.value);
    if (value.constant) return integer_at(*value.constant, at.element);
    const auto i = static_cast<size_t>(at.element);
    if (value.upper && i < value.is_upper.size() && value.is_upper[i])
      return integer_at(*value.upper, at.element);
    return std::nullopt;
  }

  // Returns which element of an operand element i of the node's result is.
  [[nodiscard]] std::optional<ElementOf> moved_from(const Node& node, int64_t i, int steps) {
    if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs.size() != 1)
      return std::nullopt;
    if (node.type == "Where") return chosen_from(node, i, steps);
    const ValueId from = node.inputs[0];
    if (keeps_elements(node.type)) return ElementOf{from, i};
    if (graph_.value(from).shape.size() != 1) return std::nullopt;
    if (node.type == "Concat") return part_of(node, i);
    std::optional<int64_t> place;
    if (node.type == "Gather") place = find({node.inputs[1], i}, steps);
    if (node.type == "Slice") place = sliced_from(node, i, steps);
    if (!place) return std::nullopt;
    return ElementOf{from, *place < 0 ? *place + graph_.value(from).shape[0] : *place};
  }

  [[nodiscard]] const Node* producer(ValueId id) const {
    const Node* made = producer_among(nodes_, id);
    for (size_t i = graph_.before.size(); made == nullptr && i-- > 0;)
      made = producer_among(*graph_.before[i], id);
    return made;
  }

 private:
  [[nodiscard]] static const Node* producer_among(const std::vector<Node>& nodes, ValueId id) {
    const auto made = std::find_if(nodes.rbegin(), nodes.rend(), [&](const Node& node) {
      return std::count(node.outputs.begin(), node.outputs.end(), id) > 0;
    });
    return made == nodes.rend() ? nullptr : &*made;
  }

  [[nodiscard]] std::optional<ElementOf> part_of(const Node& concat, int64_t i) const {
    for (const ValueId in : concat.inputs) {
      const int64_t count = num_elements(graph_.value(in).shape);
      if (i < count) return ElementOf{in, i};
      i -= count;
    }
    return std::nullopt;
  }

  // Returns an element of an operand of Where that is equal to that of the other one.
  [[nodiscard]] std::optional<ElementOf> chosen_from(const Node& where, int64_t i, int steps) {
    const ValueId a = where.inputs[1], b = where.inputs[2];
    const Shape& shape = graph_.value(where.outputs[0]).shape;
    if (graph_.value(a).shape != shape || graph_.value(b).shape != shape) return std::nullopt;
    const ElementOf first = origin({a, i}, steps), second = origin({b, i}, steps);
    if (first == second) return first;
    const auto number = is_in(first) ? number_of(first) : std::nullopt;
    if (!number || !is_in(second) || number_of(second) != number) return std::nullopt;
    return first;
  }

  // Returns where element i of a slice of a vector lies in the vector.
  [[nodiscard]] std::optional<int64_t> sliced_from(const Node& slice, int64_t i, int steps) {
    constexpr size_t kStarts = 1, kSteps = 4;
    if (!slice.has_input(kStarts)) return std::nullopt;
    const std::optional<int64_t> start = find({slice.inputs[kStarts], 0}, steps);
    if (!start || (slice.has_input(kSteps) && find({slice.inputs[kSteps], 0}, steps) != 1))
      return std::nullopt;
    const int64_t count = graph_.value(slice.inputs[0]).shape[0];
    return std::max<int64_t>(*start < 0 ? *start + count : *start, 0) + i;
  }

  const Graph& graph_;
  const std::vector<Node>& nodes_;
  int finds_ = 0;
};

// A sum of elements with factors, and of a number.
struct Sum {
  std::map<ElementOf, int64_t> terms;
  int64_t number = 0;
};

constexpr int64_t kMostNumber = int64_t{1} << 40;  // of which a sum does not overflow

bool is_integer(DType type) { return type == DType::kI64 || type == DType::kI32; }

// Adds `factor` times an element. Casts to as many bits or more keep it.
void add_term(const Graph& graph, Elements& elements, ElementOf at, int64_t factor, int depth,
              Sum& sum) {
  at = elements.origin(at);
  const Value& value = graph.value(at.value);
  const bool is_in = elements.is_in(at);
  const Node* made = is_in && depth > 0 ? elements.producer(at.value) : nullptr;
  const auto operand = [&](size_t i) {
    const bool is_one = num_elements(graph.value(made->inputs[i]).shape) == 1;
    return ElementOf{made->inputs[i], is_one ? 0 : at.element};
  };
  const auto is_alike = [&](size_t i) {
    const Value& from = graph.value(made->inputs[i]);
    const bool widens = from.dtype == value.dtype || from.dtype == DType::kI32;
    return is_integer(from.dtype) && is_integer(value.dtype) && widens &&
           (from.shape == value.shape || num_elements(from.shape) == 1);
  };
  const std::optional<int64_t> known = is_in ? elements.number_of(at) : std::nullopt;
  if (known && -kMostNumber < *known && *known < kMostNumber) {
    sum.number += factor * *known;
  } else if (made != nullptr && (made->type == "Cast" || made->type == "CastLike") && is_alike(0)) {
    add_term(graph, elements, operand(0), factor, depth - 1, sum);
  } else if (made != nullptr && (made->type == "Add" || made->type == "Sub") && is_alike(0) &&
             is_alike(1)) {
    add_term(graph, elements, operand(0), factor, depth - 1, sum);
    add_term(graph, elements, operand(1), made->type == "Sub" ? -factor : factor, depth - 1, sum);
  } else {
    sum.terms[at] += factor;
  }
}

// Returns the value of the terms where they are the difference of two elements of values around the
// body of a loop, if that follows there.
std::optional<int64_t> difference_outside(const Graph& graph, const Sum& sum) {
  if (!graph.around || sum.terms.size() != 2) return std::nullopt;
  std::optional<ElementOf> plus, minus;
  for (const auto& [at, factor] : sum.terms) {
    const auto outer = graph.around->captured.find(at.value);
    if (outer == graph.around->captured.end()) return std::nullopt;
    if (factor == 1) plus = {outer->second, at.element};
    if (factor == -1) minus = {outer->second, at.element};
  }
  if (!plus || !minus) return std::nullopt;
  return difference_of_elements(*graph.around->graph, *graph.around->nodes, *plus, *minus);
}

// Compares what nodes compute, without computing it.
class SameValues {
 public:
  SameValues(const Graph& graph, const Elements& elements) : graph_(graph), elements_(elements) {}

  [[nodiscard]] bool are_same(ValueId a, ValueId b) {
    if (a == b) return true;
    if (a == kNoValue || b == kNoValue || ++compared_ > kMostCompared) return false;
    const Value &x = graph_.value(a), &y = graph_.value(b);
    if (x.dtype != y.dtype || x.shape != y.shape) return false;
    if (x.constant || y.constant)
      return x.constant && y.constant && same_bytes(*x.constant, *y.constant);
    const Node *first = elements_.producer(a), *second = elements_.producer(b);
    return first != nullptr && second != nullptr && place_of(*first, a) == place_of(*second, b) &&
           compute_same(*first, *second, place_of(*first, a));
  }

 private:
  static constexpr int kMostCompared = 64;

  static size_t place_of(const Node& node, ValueId result) {
    const auto at = std::find(node.outputs.begin(), node.outputs.end(), result);
    return static_cast<size_t>(at - node.outputs.begin());
  }
  [[nodiscard]] bool compute_same(const Node& a, const Node& b, size_t result) {
    if (a.type != b.type || a.loop != b.loop || a.inputs.size() != b.inputs.size() ||
        !same_attributes(a.attributes, b.attributes))
      return false;
    size_t first = 0;
    if (a.type == "hone.Compress" && result == 1) {
      // How many rows a condition takes does not depend on what the rows are.
      if (graph_.value(a.outputs[0]).shape[0] != graph_.value(b.outputs[0]).shape[0]) return false;
      first = 1;
    }
    for (size_t i = first; i < a.inputs.size(); ++i)
      if (!are_same(a.inputs[i], b.inputs[i])) return false;
    return true;
  }

  const Graph& graph_;
  const Elements& elements_;
  int compared_ = 0;
};

}  // namespace

std::optional<int64_t> known_element(const Graph& graph, const std::vector<Node>& nodes,
                                     ElementOf at) {
  return Elements(graph, nodes).find(at);
}

std::optional<ElementOf> moved_from(const Graph& graph, const std::vector<Node>& nodes,
                                    const Node& node, int64_t i) {
  return Elements(graph, nodes).moved_from(node, i, kMostSteps);
}

std::optional<int64_t> number_of(const Graph& graph, ElementOf at) {
  return Elements(graph, graph.nodes).number_of(at);
}

std::optional<int64_t> difference_of_elements(const Graph& graph, const std::vector<Node>& nodes,
                                              ElementOf a, ElementOf b) {
  constexpr int kMostDepth = 8;
  Elements elements(graph, nodes);
  Sum sum;
  add_term(graph, elements, a, 1, kMostDepth, sum);
  add_term(graph, elements, b, -1, kMostDepth, sum);
  std::erase_if(sum.terms, [](const auto& term) { return term.second == 0; });
  if (sum.terms.empty()) return sum.number;
  const auto outside = difference_outside(graph, sum);
  return outside ? std::optional(*outside + sum.number) : std::nullopt;
}

bool are_same_element(const Graph& graph, const std::vector<Node>& nodes, ElementOf a,
                      ElementOf b) {
  if (difference_of_elements(graph, nodes, a, b) == 0) return true;
  Elements elements(graph, nodes);
  a = elements.origin(a);
  b = elements.origin(b);
  if (a.element != b.element) return false;
  if (SameValues(graph, elements).are_same(a.value, b.value)) return true;
  if (!graph.around) return false;
  const auto& captured = graph.around->captured;
  const auto x = captured.find(a.value), y = captured.find(b.value);
  return x != captured.end() && y != captured.end() &&
         are_same_element(*graph.around->graph, *graph.around->nodes, {x->second, a.element},
                          {y->second, b.element});
}

void choose_known_elements(Graph& graph, const Node& node, const std::vector<Node>& nodes) {
  if (node.outputs.size() != 1 || node.outputs[0] == kNoValue) return;
  const Value& value = graph.value(node.outputs[0]);
  if (value.constant || !value.upper || value.dtype != DType::kI64) return;
  Tensor found(DType::kI64, value.shape);
  Elements elements(graph, nodes);
  for (int64_t i = 0; i < found.size(); ++i) {
    const std::optional<ElementOf> from = elements.moved_from(node, i, kMostSteps);
    const std::optional<int64_t> element = from ? elements.find(*from) : std::nullopt;
    if (!element) return;
    found.as<int64_t>()[static_cast<size_t>(i)] = *element;
  }
  graph.value(node.outputs[0]).constant = std::move(found);
}

}  // namespace hone::graph
