#include "hone/graph/passes/rewrite.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace hone::graph {

Status replace_node(Graph& graph, size_t index, const Build& build) {
  const Node old = graph.nodes[index];
  std::vector<Node> made;
  ExpandContext context(graph, old, made);
  const ValueId value = build(context);
  HONE_RETURN_IF_ERROR(context.status());
  const ValueId result = old.outputs[0];
  HONE_ASSERT(graph.value(value).shape == graph.value(result).shape &&
                  graph.value(value).dtype == graph.value(result).dtype,
              "a node is replaced by one with the same type and shape");
  const bool ends = !made.empty() && made.back().outputs[0] == value;
  if (ends) {
    made.back().outputs[0] = result;
  } else {
    graph.replace_uses(result, value);
  }
  graph.nodes.erase(graph.nodes.begin() + static_cast<long>(index));
  std::vector<std::string> names;
  for (Node& node : made) names.push_back(std::exchange(node.name, ""));
  // The last one stands for the old one, unless one does the same as that or it has a name already.
  if (ends && names.back().starts_with(old.name + "#") &&
      std::find(names.begin(), names.end(), old.name) == names.end())
    names.back() = old.name;
  graph.nodes.insert(graph.nodes.begin() + static_cast<long>(index),
                     std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  // What died gives its name to what does the same with other operands.
  const std::vector<bool> live = live_nodes(graph);
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) graph.nodes[i].name.clear();
  }
  for (size_t i = 0; i < names.size(); ++i)
    graph.nodes[index + i].name = graph.unique_node_name(names[i]);
  return ok_status();
}

const Node* RewriteSite::maker(ValueId id) const {
  const int producer = id == kNoValue ? -1 : uses.producer[static_cast<size_t>(id)];
  return producer < 0 ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
}

const Node* RewriteSite::sole_maker(ValueId id) const {
  return id != kNoValue && sole_reader(id) >= 0 ? maker(id) : nullptr;
}

int RewriteSite::sole_reader(ValueId id) const {
  const auto& readers = uses.readers[static_cast<size_t>(id)];
  return readers.size() == 1 && !graph.is_output(id) ? readers[0] : -1;
}

Status rewrite(Graph& graph, std::span<const Rule> rules) {
  for (bool changed = true; changed;) {
    changed = false;
    auto uses = std::make_unique<const Uses>(graph);
    for (size_t i = 0; i < graph.nodes.size();) {
      const bool one_result = graph.nodes[i].outputs.size() == 1;
      bool here = false;
      for (size_t r = 0; one_result && !here && r < rules.size(); ++r) {
        HONE_ASSIGN_OR_RETURN(here, rules[r]({graph, *uses, i}));
      }
      if (!here) {
        ++i;
        continue;
      }
      changed = true;
      const size_t before = graph.nodes.size();
      remove_dead_nodes(graph);
      uses = std::make_unique<const Uses>(graph);
      // What died stood before the new nodes, which may be changed further.
      i -= std::min(i, before - graph.nodes.size());
    }
  }
  return ok_status();
}

std::optional<double> uniform_constant(const Value& value) {
  if (!value.constant || value.constant->size() == 0) return std::nullopt;
  const Tensor& tensor = *value.constant;
  const double first = tensor.at(0);
  // Uniform weights are not worth a look at each of their elements.
  if (tensor.size() > 1 << 16) return std::nullopt;
  for (int64_t i = 1; i < tensor.size(); ++i) {
    if (tensor.at(i) != first) return std::nullopt;
  }
  return first;
}

Shape permutation_of(const Graph& graph, const Node& node) {
  Shape perm = node.attributes.integers("perm");
  if (!perm.empty()) return perm;
  for (size_t d = graph.value(node.inputs[0]).shape.size(); d-- > 0;)
    perm.push_back(static_cast<int64_t>(d));
  return perm;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0);
}

namespace {

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, Subgraph>) return false;
        if constexpr (std::is_same_v<T, Tensor>) return same_bytes(x, y);
        if constexpr (!std::is_same_v<T, Subgraph> && !std::is_same_v<T, Tensor>) return x == y;
      },
      a);
}

}  // namespace

bool same_attributes(const Attributes& a, const Attributes& b) {
  return std::equal(a.all().begin(), a.all().end(), b.all().begin(), b.all().end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && same_attribute(x.second, y.second);
                    });
}

}  // namespace hone::graph
