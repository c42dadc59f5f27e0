// Values of half types become float32 between the inputs, the weights and the results of the graph.
//
// A value has up to two forms: in its half type, as the model has it, and in float32. The first
// form is read by BitCast, by nodes with graphs of their own, and by what moves elements that
// nobody has in float32 or that are results of the graph. All others read the second form, which is
// not rounded to the half type: so what Cast to integers, Floor, Round and ArgMax make of it may
// differ by one from what they make of the rounded value, and comparisons may come out otherwise. A
// form that is missing is made by a Cast in front of the first node that reads it.
#include <algorithm>
#include <map>
#include <numbers>
#include <set>
#include <string_view>

#include "hone/graph/node_names.h"
#include "hone/graph/op.h"
#include "hone/graph/passes/cast_node.h"
#include "hone/graph/passes/pass.h"
#include "hone/tensor/half_tensor.h"

namespace hone::graph {
namespace {

// Smaller constants say nothing about how a model keeps its weights.
constexpr int64_t kLeastWeights = 4096;

// What activations are made of (Gelu, HardSwish). Rounded to a half type it stands for itself, so
// that recognize_patterns finds it.
constexpr double kNumbers[] = {std::numbers::sqrt2, 1 / std::numbers::sqrt2,
                               std::numbers::sqrt2* std::numbers::inv_sqrtpi, 0.044715, 1.0 / 6};

Tensor in_float32(const Tensor& constant) {
  Tensor wide = widened(constant);
  if (wide.size() != 1) return wide;
  for (const double number : kNumbers) {
    Tensor rounded(constant.dtype(), {1});
    rounded.set(0, number);
    if (rounded.at(0) == constant.at(0)) wide.set(0, number);
  }
  return wide;
}

class Widening {
 public:
  explicit Widening(Graph& graph) : graph_(graph), names_(graph) {
    for (const Value& value : graph.values) type_.push_back(value.dtype);
  }

  bool needed() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& node) {
      return any_half(node.inputs) || any_half(node.outputs);
    });
  }

  void run() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : before) {
      if (is_cast_to_half(node)) {
        cast_to_half(std::move(node));
      } else if (is_cast_to_float(node)) {
        same_[node.outputs[0]] = wide(node.inputs[0]);
      } else if (!any_half(node.inputs) && !any_half(node.outputs)) {
        add_as_it_is(std::move(node));
      } else if (stays_half(node)) {
        keep(std::move(node));
      } else {
        widen(std::move(node));
      }
    }
    for (const ValueId out : graph_.outputs) {
      if (is_half(out)) half(out);
    }
    replace_constants();
  }

 private:
  bool is_half(ValueId id) const {
    return id != kNoValue && static_cast<size_t>(id) < type_.size() &&
           hone::is_half(type_[static_cast<size_t>(id)]);
  }
  bool any_half(const std::vector<ValueId>& ids) const {
    return std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return is_half(id); });
  }
  bool is_cast_to_half(const Node& node) const {
    return node.type == "Cast" && is_half(node.outputs[0]);
  }
  // Its result is what is computed with anyway.
  bool is_cast_to_float(const Node& node) const {
    return node.type == "Cast" && is_half(node.inputs[0]) && !graph_.is_output(node.outputs[0]) &&
           graph_.value(node.outputs[0]).dtype == DType::kF32;
  }

  // Returns whether a node reads and writes half types as the model says: the bits themselves, what
  // is made without operands of such a type, and what moves elements that nobody has in float32, or
  // that are a result of the graph.
  bool stays_half(const Node& node) const {
    const bool of_loop = node.loop != nullptr || node.type == "hone.Hold";
    if (node.type == "BitCast" || of_loop || !any_half(node.inputs)) return true;
    for (const auto& [name, value] : node.attributes.all()) {
      if (std::holds_alternative<Subgraph>(value)) return true;
    }
    if (node.op->kind != Kind::kView && node.op->kind != Kind::kOpaque) return false;
    bool computed = false, any = false;
    for (const ValueId in : node.inputs) {
      if (!is_half(in) || graph_.value(in).constant) continue;
      any = true;
      computed |= wide_.contains(in);
    }
    const bool is_result = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) {
      return is_half(out) && graph_.is_output(out);
    });
    return (any && !computed) || is_result;
  }

  // Softmax's results are at most 1, so to leave the rounding between it and a product out changes
  // no result beyond the type's rounding; any other Cast may make infinities.
  void cast_to_half(Node node) {
    const ValueId in = node.inputs[0], out = node.outputs[0];
    const Node* maker = maker_of(same(in));
    if (maker != nullptr && maker->type == "Softmax" && graph_.value(same(in)).dtype == DType::kF32)
      wide_[out] = same(in);
    node.inputs[0] = is_half(in) ? wide(in) : same(in);
    half_[out] = out;
    append(std::move(node));
  }

  void add_as_it_is(Node node) {
    for (ValueId& in : node.inputs) in = same(in);
    append(std::move(node));
  }

  void keep(Node node) {
    for (ValueId& in : node.inputs) in = is_half(in) ? half(in) : same(in);
    for (const ValueId out : node.outputs) {
      if (is_half(out)) half_[out] = out;
    }
    append(std::move(node));
  }

  void widen(Node node) {
    for (ValueId& in : node.inputs) in = is_half(in) ? wide(in) : same(in);
    for (ValueId& out : node.outputs) {
      if (!is_half(out)) continue;
      const ValueId original = out;
      if (graph_.is_output(original)) {
        out = new_value(original, DType::kF32);
      } else {
        graph_.value(original).dtype = DType::kF32;
      }
      wide_[original] = out;
    }
    append(std::move(node));
  }

  ValueId same(ValueId id) const {
    const auto found = same_.find(id);
    return found == same_.end() ? id : found->second;
  }

  ValueId wide(ValueId id) {
    if (const auto found = wide_.find(id); found != wide_.end()) return found->second;
    const std::optional<Tensor>& constant = graph_.value(id).constant;
    const ValueId made = constant
                             ? graph_.add_constant(graph_.value(id).name, in_float32(*constant))
                             : new_value(id, DType::kF32);
    if (!constant) {
      half_.try_emplace(id, id);  // who reads its half form later reads the value itself
      add_cast(id, made);
    }
    return wide_[id] = made;
  }

  ValueId half(ValueId id) {
    if (const auto found = half_.find(id); found != half_.end()) return found->second;
    const auto from = wide_.find(id);
    if (from == wide_.end() || graph_.value(id).constant) return half_[id] = id;  // as it was
    // The value itself if it has not become its float32 form: results of the graph.
    const DType dtype = type_[static_cast<size_t>(id)];
    const ValueId made = from->second == id ? new_value(id, dtype) : id;
    add_cast(from->second, made);
    return half_[id] = made;
  }

  ValueId new_value(ValueId like, DType dtype) {
    const ValueId made =
        graph_.add_value(graph_.value(like).name + "." + std::string(dtype_name(dtype)), dtype,
                         graph_.value(like).shape);
    graph_.value(made).extents = graph_.value(like).extents;
    return made;
  }

  void add_cast(ValueId from, ValueId to) { append(cast_node(graph_, names_, from, to)); }

  void append(Node node) {
    for (const ValueId out : node.outputs) maker_[out] = graph_.nodes.size();
    graph_.nodes.push_back(std::move(node));
  }

  const Node* maker_of(ValueId id) const {
    const auto found = maker_.find(id);
    return found == maker_.end() ? nullptr : &graph_.nodes[found->second];
  }

  // A constant whose half form nobody reads any more becomes float32 itself.
  void replace_constants() {
    std::set<ValueId> used(graph_.outputs.begin(), graph_.outputs.end());
    for (const Node& node : graph_.nodes) used.insert(node.inputs.begin(), node.inputs.end());
    std::map<ValueId, ValueId> original;
    for (const auto& [id, made] : wide_) {
      Value& value = graph_.value(id);
      if (!value.constant || used.contains(id)) continue;
      value.constant = std::move(graph_.value(made).constant);
      value.dtype = DType::kF32;
      graph_.value(made).constant.reset();
      original[made] = id;
    }
    for (Node& node : graph_.nodes) {
      for (ValueId& in : node.inputs) {
        if (const auto found = original.find(in); found != original.end()) in = found->second;
      }
    }
  }

  Graph& graph_;
  NodeNames names_;
  std::vector<DType> type_;          // of each value, as the model has it
  std::map<ValueId, ValueId> wide_;  // values of half types in float32
  std::map<ValueId, ValueId> half_;  // the same in their own type
  std::map<ValueId, ValueId> same_;  // results of casts to float32 that are left out
  std::map<ValueId, size_t> maker_;  // the places of the nodes that make values
};

// The half type of the model's weights, by bytes, and whether there are no large ones in float32.
HalfWeights weights_of(const Graph& graph) {
  std::map<DType, int64_t> elements;
  HalfWeights weights;
  weights.all = true;
  for (const Value& value : graph.values) {
    if (!value.constant || !is_float(value.dtype)) continue;
    const int64_t size = value.constant->size();
    if (hone::is_half(value.dtype)) {
      elements[value.dtype] += size;
    } else if (size >= kLeastWeights) {
      weights.all = false;
    }
  }
  for (const auto& [dtype, size] : elements) {
    if (weights.dtype == DType::kF32 || size > elements[weights.dtype]) weights.dtype = dtype;
  }
  weights.all &= elements.size() == 1;
  return weights;
}

}  // namespace

Status widen_halves(Graph& graph, const PassOptions& options, HalfWeights& weights) {
  if (!options.widens_halves) return ok_status();
  Widening widening(graph);
  if (!widening.needed()) return ok_status();
  weights = weights_of(graph);
  widening.run();
  return ok_status();
}

}  // namespace hone::graph
