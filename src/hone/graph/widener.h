// graph/widener.h - the rules that make an operator the same at all sizes of a run
// (widen_rules.cc), and the view of the model that they are given. widen_nodes.cc applies them.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>

#include "hone/graph/extent_nodes.h"
#include "hone/graph/inline_branch.h"
#include "hone/graph/loop_body.h"
#include "hone/graph/ops/recurrent.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/rewrite.h"
#include "hone/graph/size_probes.h"

namespace hone::graph {

constexpr std::string_view kQuantizedLstm = "com.microsoft.DynamicQuantizeLSTM";

// The nodes of a model, what is known of them at all sizes, and how they are changed.
class Widener {
 public:
  Widener(Graph& raw, const Graph& graph, const std::vector<SizeProbe>& probes)
      : raw_(raw), graph_(graph), uses_(graph), probes_(probes), kept_loops_(raw.keeps_loops) {}

  bool run();
  bool run_by_shapes();
  bool keep_loops();  // returns whether this changes anything
  [[nodiscard]] bool has_other_bodies(const Node& node) const;

  [[nodiscard]] bool varies(ValueId id, size_t dim) const {
    const Shape& most = graph_.value(id).shape;
    return std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
      const Shape& shape = probe.graph.value(id).shape;
      return shape.size() == most.size() && shape[dim] != most[dim];
    });
  }
  // Returns whether bodies of operators may be told how many elements a run has.
  [[nodiscard]] bool counts_in_bodies() const { return graph_.repeats_steps; }
  // The dimensions of a value that vary.
  [[nodiscard]] std::vector<size_t> open_dims(ValueId id) const {
    std::vector<size_t> dims;
    for (size_t d = 0; d < graph_.value(id).shape.size(); ++d) {
      if (varies(id, d)) dims.push_back(d);
    }
    return dims;
  }

  // Returns whether a constant of the file has other elements at other sizes.
  [[nodiscard]] bool differs(ValueId id) const {
    const auto& most = graph_.value(id).constant;
    return most && std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
             const auto& here = probe.graph.value(id).constant;
             return here && here->shape() == most->shape() && !same_bytes(*here, *most);
           });
  }
  // Returns whether a Tile repeats a dimension that has one element at some sizes only.
  [[nodiscard]] bool repeats_one_element(const Node& node) const {
    const auto& repeats = graph_.value(node.inputs[1]).constant;
    const std::vector<size_t> dims = open_dims(node.inputs[0]);
    return repeats && std::any_of(dims.begin(), dims.end(), [&](size_t d) {
             return repeats->at(static_cast<int64_t>(d)) != 1 &&
                    std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
                      const Shape& shape = probe.graph.value(node.inputs[0]).shape;
                      return d < shape.size() && shape[d] == 1;
                    });
           });
  }
  // Returns whether a node of the file becomes as many nodes at all sizes.
  [[nodiscard]] bool is_made_alike(const Node& node) const {
    return std::all_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
      return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) {
        return out == kNoValue || probe.alike[static_cast<size_t>(out)];
      });
    });
  }
  // Returns whether the result of a node of the file is made by one node of this type, which has
  // the same attributes at all sizes.
  [[nodiscard]] bool is_made_by(const Node& node, std::string_view type) const {
    const Node* most = only_node(graph_, uses_.producer, node);
    if (most == nullptr || most->type != type) return false;
    return std::all_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
      if (num_elements(probe.graph.value(node.outputs[0]).shape) == 0) return true;
      const Node* made = only_node(probe.graph, probe.producers, node);
      return made != nullptr && made->type == type &&
             same_attributes(made->attributes, most->attributes);
    });
  }
  // Gives the node an operand with its largest extents along `dims`. What a run does not have is
  // `fill`, or anything if that is missing. Returns whether there are any such dimensions.
  bool widen(Node& node, size_t operand, const std::vector<size_t>& dims,
             std::optional<double> fill) {
    if (dims.empty()) return false;
    Shape shape(graph_.value(node.inputs[operand]).shape.size(), -1);
    for (const size_t d : dims) shape[d] = graph_.value(node.inputs[operand]).shape[d];
    node.inputs[operand] = before(node, "hone.Widen", {node.inputs[operand]}, {{"shape", shape}});
    if (fill) before_.back().attributes.set("value", static_cast<float>(*fill));
    return true;
  }
  // Cuts dimension `dim` of a result to the extent of a dimension of `like`, or to `factor` times
  // that plus `offset`.
  void narrow(Node& node, size_t result, size_t dim, ValueId like, size_t of,
              std::optional<std::pair<int64_t, int64_t>> factor_and_offset = std::nullopt) {
    if (result >= node.outputs.size() || node.outputs[result] == kNoValue) return;
    const ValueId whole = add_value(node);
    Node cut = made(node, "hone.Narrow", {whole, like}, node.outputs[result],
                    {{"axis", static_cast<int64_t>(dim)}, {"of", static_cast<int64_t>(of)}});
    if (factor_and_offset) {
      cut.attributes.set("factor", factor_and_offset->first);
      cut.attributes.set("offset", factor_and_offset->second);
    }
    after_.insert(after_.begin(), std::move(cut));
    node.outputs[result] = whole;
  }
  // Adds a node before this one. Returns its result.
  ValueId before(const Node& node, const char* type, std::vector<ValueId> inputs,
                 NamedAttributes attributes = {}) {
    const ValueId result = add_value(node);
    before_.push_back(made(node, type, std::move(inputs), result, attributes));
    return result;
  }
  // Adds nodes and constants before this one.
  NodeMaker maker(const Node& node) {
    return {
        [this, &node](const char* type, std::vector<ValueId> inputs, NamedAttributes attributes) {
          return before(node, type, std::move(inputs), attributes);
        },
        [this, &node](Tensor tensor) { return constant(node, std::move(tensor)); }};
  }
  // Makes a node hand on the last of the results that others compute in its place.
  void replace(Node& node, const std::vector<ValueId>& results) {
    const Node holder = std::move(node);
    for (size_t i = 0; i < results.size(); ++i)
      before_.push_back(made(holder, "Identity", {results[i]}, holder.outputs[i], {}));
    node = std::move(before_.back());
    before_.pop_back();
  }
  // Returns whether this holds for an extent at some size.
  [[nodiscard]] bool any_extent(ValueId id, size_t dim,
                                const std::function<bool(int64_t)>& holds) const {
    return holds(extent_of(id, dim)) ||
           std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
             return holds(probe.graph.value(id).shape[dim]);
           });
  }
  // Returns the axis that an operand, if there is such a one, or else an attribute names.
  [[nodiscard]] std::optional<size_t> axis_of(const Node& node, size_t operand,
                                              int64_t otherwise) const {
    int64_t given = node.attributes.integer("axis", otherwise);
    if (node.has_input(operand)) {
      const auto& known = graph_.value(node.inputs[operand]).constant;
      if (!known || known->size() != 1) return std::nullopt;
      given = static_cast<int64_t>(known->at(0));
    }
    const auto axis = normalize_axis(given, static_cast<int64_t>(rank_of(node.inputs[0])));
    return axis ? std::optional(static_cast<size_t>(*axis)) : std::nullopt;
  }
  [[nodiscard]] int opset_of(const Node& node) const {
    return node.opset != 0 ? node.opset : raw_.opset;
  }
  // Takes the node of an If apart into the nodes of its branches.
  void inline_branches(Node& node);
  // Returns the value of a condition that is known, and the same at all sizes.
  [[nodiscard]] std::optional<bool> known_condition(ValueId id) const {
    const auto& most = graph_.value(id).constant;
    const bool known = most && most->size() == 1 &&
                       std::all_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
                         const auto& here = probe.graph.value(id).constant;
                         return here && here->size() == 1 && here->at(0) == most->at(0);
                       });
    return known ? std::optional(most->at(0) != 0) : std::nullopt;
  }
  // Returns whether a condition follows from the sizes, in another way than that it is the same.
  [[nodiscard]] bool depends_on_sizes(ValueId id) const {
    return !known_condition(id) &&
           (graph_.value(id).constant ||
            std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
              return probe.graph.value(id).constant.has_value();
            }));
  }
  // Returns whether loops have been kept since the graph was read.
  [[nodiscard]] bool kept_loops() const { return kept_loops_; }
  ValueId constant(const Node& node, Tensor tensor) {
    return raw_.add_constant(node.name + ".constant", std::move(tensor));
  }
  [[nodiscard]] DType dtype_of(ValueId id) const { return graph_.value(id).dtype; }
  [[nodiscard]] size_t rank_of(ValueId id) const { return graph_.value(id).shape.size(); }
  [[nodiscard]] int64_t extent_of(ValueId id, size_t dim) const {
    return graph_.value(id).shape[dim];
  }

 private:
  // Returns the node that makes the result of one of the file from its operand; null if several do.
  static const Node* only_node(const Graph& graph, const std::vector<int>& producers,
                               const Node& node) {
    ValueId result = node.outputs[0];
    while (producers[static_cast<size_t>(result)] >= 0) {
      const Node& made = graph.nodes[static_cast<size_t>(producers[static_cast<size_t>(result)])];
      if (made.type != "Identity") return made.inputs[0] == node.inputs[0] ? &made : nullptr;
      result = made.inputs[0];
    }
    return nullptr;
  }
  ValueId add_value(const Node& node) {
    return raw_.add_value(fmt::format("{}.{}", node.name, raw_.values.size()), DType::kF32, {});
  }
  static Node made(const Node& node, const char* type, std::vector<ValueId> inputs, ValueId result,
                   NamedAttributes attributes) {
    Node node_made;
    node_made.name = node.name;
    node_made.type = type;
    node_made.op = find_op(type, kMaxOpset);
    node_made.opset = kMaxOpset;
    for (const auto& [name, value] : attributes) node_made.attributes.set(name, value);
    node_made.inputs = std::move(inputs);
    node_made.outputs = {result};
    return node_made;
  }

  // Applies the rules of the nodes that may be widened. Returns whether this changed anything.
  bool apply_rules(const std::function<bool(const Node&)>& may);

  Graph& raw_;
  const Graph& graph_;
  const Uses uses_;
  const std::vector<SizeProbe>& probes_;
  const bool kept_loops_;
  std::vector<Node> before_, after_;  // nodes beside the one at hand
};

struct WidenRule {
  std::string_view type;
  bool (*apply)(Widener&, Node&);
  // An operator that has no more than the types and shapes of the results, if the rule needs no
  // more, and these cost far less than the results.
  const char* with_shapes_only = nullptr;
};
// Returns the rule of a node's operator; null if there is none.
[[nodiscard]] const WidenRule* widen_rule_of(const Node& node);

}  // namespace hone::graph
