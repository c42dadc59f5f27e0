#include "hone/graph/infer.h"

#include <algorithm>
#include <limits>
#include <set>

#include "hone/base/allocation.h"
#include "hone/graph/aggregates.h"
#include "hone/graph/expand.h"
#include "hone/graph/extents.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/unsupported_list.h"
#include "hone/tensor/max_rank.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {

bool joins_parts(const Node& node) {
  return node.type == "Concat" || node.type == "hone.Interleave";
}

bool is_reshape(const Node& node) {
  return node.op->kind == Kind::kView && node.type != "Transpose" && node.type != "hone.Window" &&
         !joins_parts(node);
}

bool Padding::any() const {
  const auto positive = [](int64_t p) { return p > 0; };
  return std::any_of(low.begin(), low.end(), positive) ||
         std::any_of(high.begin(), high.end(), positive);
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {  // from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

std::optional<int64_t> normalize_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

const Tensor* InferContext::constant(size_t i) const {
  const Value& v = graph_.value(node_.inputs[i]);
  return v.constant ? &*v.constant : nullptr;
}

Result<std::vector<int64_t>> InferContext::integers(size_t i, std::string_view what) const {
  const Tensor* tensor = constant(i);
  if (tensor == nullptr) {
    graph_.unknown_operands.push_back(node_.inputs[i]);
    return unsupported("{} is computed at run time ('{}'), expected a constant", what,
                       graph_.value(node_.inputs[i]).name);
  }
  if (is_float(tensor->dtype()) || is_small(tensor->dtype())) {
    return fail("{} has type {}, expected i64", what, dtype_name(tensor->dtype()));
  }
  std::vector<int64_t> values;
  for (int64_t k = 0; k < tensor->size(); ++k) {
    values.push_back(integer_at(*tensor, k));
  }
  return values;
}

Result<const Tensor*> InferContext::required(size_t i, std::string_view what) const {
  if (const Tensor* tensor = constant(i)) return tensor;
  graph_.unknown_operands.push_back(node_.inputs[i]);
  return unsupported("{} is computed at run time ('{}'), expected a constant", what,
                     graph_.value(node_.inputs[i]).name);
}

Result<std::optional<std::vector<int64_t>>> InferContext::integers_or_attribute(
    size_t i, const std::string& what) const {
  if (has(i)) {
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> values, integers(i, what));
    return std::optional(std::move(values));
  }
  const auto* values = attributes().find<std::vector<int64_t>>(what);
  return values ? std::optional(*values) : std::nullopt;
}

Status InferContext::set(size_t output, DType dtype, Shape shape) {
  if (shape.size() > kMaxRank)
    return unsupported("a result of {} dimensions, at most {} are supported", shape.size(),
                       kMaxRank);
  if (!is_valid(shape))
    return fail("the result would have the shape {}, which is negative or too large",
                to_string(shape));
  if (output >= node_.outputs.size() || node_.outputs[output] == kNoValue) return ok_status();
  Value& value = graph_.value(node_.outputs[output]);
  value.dtype = dtype;
  value.shape = std::move(shape);
  if (num_elements(value.shape) == 0) value.constant = Tensor(dtype, value.shape);
  return ok_status();
}

Status InferContext::check_constant(DType dtype, const Shape& shape) const {
  if (!is_valid(shape)) return fail("a constant of shape {}", to_string(shape));
  const int64_t bytes = num_elements(shape) * dtype_bytes(dtype);
  if (bytes <= kMaxMadeBytes) return ok_status();
  return unsupported(
      "a constant {} {} of {} bytes would be computed in advance, expected at most {}",
      dtype_name(dtype), to_string(shape), bytes, kMaxMadeBytes);
}

Result<Tensor> InferContext::new_constant(DType dtype, Shape shape) {
  HONE_RETURN_IF_ERROR(check_constant(dtype, shape));
  const int64_t bytes = num_elements(shape) * dtype_bytes(dtype);
  if (!graph_.may_make(bytes)) {
    return unsupported(
        "a constant {} {} of {} bytes: more than {} bytes would be computed in advance, with {} "
        "before",
        dtype_name(dtype), to_string(shape), bytes, kMaxMadeBytes, graph_.made_bytes);
  }
  graph_.made_bytes += bytes;
  return Tensor(dtype, std::move(shape));
}

Result<Tensor> InferContext::new_numbers(DType dtype, Shape shape, int64_t uniforms) {
  HONE_RETURN_IF_ERROR(check_constant(dtype, shape));
  const int64_t count = num_elements(shape), most = kMaxMadeNumbers - graph_.made_numbers;
  if (count > most / uniforms) {
    return unsupported(
        "{} numbers of a constant {} {} would be computed in advance, expected at most {}{}", count,
        dtype_name(dtype), to_string(shape), most / uniforms,
        graph_.made_numbers > 0 ? ", with those before" : "");
  }
  graph_.made_numbers += count * uniforms;
  return new_constant(dtype, std::move(shape));
}

Status InferContext::set_constant(size_t output, Tensor tensor) {
  HONE_RETURN_IF_ERROR(set(output, tensor.dtype(), tensor.shape()));
  if (output < node_.outputs.size() && node_.outputs[output] != kNoValue)
    graph_.value(node_.outputs[output]).constant = std::move(tensor);
  return ok_status();
}

std::string InferContext::where() const {
  return fmt::format("{}: {}: ", graph_.file, name_and_type(node_));
}

namespace {

std::string_view type_code(const Attribute& attribute) {
  constexpr std::string_view kCodes[] = {"i", "f", "s", "is", "fs", "ss", "t", "g"};
  return kCodes[attribute.index()];
}

Status check_attributes(const Graph& graph, const Node& node) {
  const InferContext context(const_cast<Graph&>(graph), node);
  for (const auto& [name, value] : node.attributes.all()) {
    std::string_view expected;
    std::string_view rest = node.op->attributes;
    while (!rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      if (item.substr(0, item.find(':')) == name) expected = item.substr(item.find(':') + 1);
    }
    if (expected.empty()) return context.fail("unknown attribute '{}'", name);
    // An empty list has no type of its own.
    const bool empty_list = expected.size() == 2 && type_code(value).size() == 2;
    if (type_code(value) != expected && !empty_list) {
      return context.fail("attribute '{}' has type {}, expected {}", name, type_code(value),
                          expected);
    }
  }
  return ok_status();
}

// Values that shape rules read are small; larger ones wait for the pass fold_constants.
constexpr int64_t kSmall = 1 << 16;

bool all_known(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) {
    return out == kNoValue || graph.value(out).constant.has_value();
  });
}

Status fold_small(Graph& graph, const Node& node) {
  if (node.op->fold == nullptr || all_known(graph, node)) return ok_status();
  for (const ValueId in : node.inputs) {
    if (in != kNoValue && !graph.value(in).constant && !node.op->folds_shapes) return ok_status();
  }
  for (const ValueId out : node.outputs) {
    if (out != kNoValue && num_elements(graph.value(out).shape) > kSmall) return ok_status();
  }
  if (!may_fold(graph, node)) return ok_status();
  Result<std::vector<Tensor>> results = node.op->fold(graph, node);
  if (results.status().code() == Code::kTimeout) return ok_status();
  HONE_RETURN_IF_ERROR(results.status());
  for (size_t i = 0; i < node.outputs.size() && i < results->size(); ++i) {
    if (node.outputs[i] != kNoValue) graph.value(node.outputs[i]).constant = (*results)[i];
  }
  return ok_status();
}

}  // namespace

bool may_fold(Graph& graph, const Node& node) {
  // Another shape of the same bytes costs nothing.
  if (is_reshape(node)) return true;
  int64_t given = 0, made = 0;
  std::set<ValueId> distinct(node.inputs.begin(), node.inputs.end());
  for (const ValueId in : distinct) {
    if (in != kNoValue && graph.value(in).constant) given += graph.value(in).constant->bytes();
  }
  for (const ValueId out : node.outputs) {
    if (out != kNoValue)
      made += num_elements(graph.value(out).shape) * dtype_bytes(graph.value(out).dtype);
  }
  const int64_t work = std::max(made, given);
  if (work > kMaxFoldedBytes + kFoldsOfWeights * graph.weight_bytes - graph.folded_bytes)
    return false;
  if (made > given && !graph.may_make(made)) return false;
  graph.folded_bytes += work;
  if (made > given) graph.made_bytes += made;
  return true;
}

namespace {

// Returns whether an operator only moves elements, or converts them, so that it takes any type.
bool takes_small_types(const Node& node) {
  constexpr std::string_view kTypes[] = {
      "BitCast",        "Cast",     "Compress",  "ConstantOfShape", "EyeLike",  "Expand", "Gather",
      "GatherElements", "GatherND", "Pad",       "ReverseSequence", "Shape",    "Size",   "Slice",
      "Tile",           "Where",    "hone.Copy", "hone.Hold",       "hone.Loop"};
  return node.op->kind == Kind::kView || node.op->expand != nullptr ||
         std::find(std::begin(kTypes), std::end(kTypes), node.type) != std::end(kTypes);
}

// Expansions are checked by what they are made of.
Status check_small_types(const Graph& graph, const Node& node) {
  if (takes_small_types(node)) return ok_status();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.has_input(i) || !is_small(graph.value(node.inputs[i]).dtype)) continue;
    return InferContext(const_cast<Graph&>(graph), node)
        .unsupported(
            "operand {} of type {}, of which no operator computes: expected a Cast or "
            "DequantizeLinear before it",
            i, dtype_name(graph.value(node.inputs[i]).dtype));
  }
  return ok_status();
}

Status check_node(Graph& graph, const Node& node) {
  const InferContext context(graph, node);
  const auto inputs = static_cast<int>(node.inputs.size());
  if (inputs < node.op->min_inputs || inputs > node.op->max_inputs) {
    const int least = node.op->min_inputs, most = node.op->max_inputs;
    return context.fail(
        "{} operands, expected {}", inputs,
        least == most ? std::to_string(least) : fmt::format("{} to {}", least, most));
  }
  for (int i = 0; i < node.op->min_inputs; ++i) {
    if (!node.has_input(static_cast<size_t>(i))) return context.fail("operand {} is missing", i);
  }
  if (static_cast<int>(node.outputs.size()) > node.op->max_outputs) {
    return context.unsupported("{} results, at most {} are supported", node.outputs.size(),
                               node.op->max_outputs);
  }
  HONE_RETURN_IF_ERROR(check_small_types(graph, node));
  return check_attributes(graph, node);
}

}  // namespace

Status infer_node(Graph& graph, const Node& node) {
  HONE_RETURN_IF_ERROR(check_node(graph, node));
  InferContext context(graph, node);
  return node.op->infer(context);
}

namespace {

// Operators that never give less for more.
bool is_monotone(std::string_view type) {
  constexpr std::string_view kTypes[] = {"Add",     "Cast",  "Concat",    "Gather",    "Identity",
                                         "Max",     "Min",   "ReduceMax", "ReduceMin", "ReduceSum",
                                         "Reshape", "Slice", "Squeeze",   "Unsqueeze"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// Returns an upper bound of the elements of a value of which none is known, an i64 or i32.
Tensor largest(const Value& value) {
  Tensor tensor(value.dtype, value.shape);
  if (value.dtype == DType::kI64)
    std::ranges::fill(tensor.as<int64_t>(), INT64_MAX);
  else
    std::ranges::fill(tensor.as<int32_t>(), INT32_MAX);
  return tensor;
}

// Returns whether sums with these bounds may overflow.
bool is_near_the_end(const Tensor& bounds) {
  const int64_t most = bounds.dtype() == DType::kI64 ? int64_t{1} << 62 : int64_t{1} << 30;
  for (int64_t i = 0; i < bounds.size(); ++i)
    if (integer_at(bounds, i) >= most) return true;
  return false;
}

// Computes upper bounds of a small result of integers from those of its operands. Of a Min it is
// enough that one is known.
Status bound_small(Graph& graph, const Node& node) {
  const ValueId out = node.outputs[0];
  if (out == kNoValue || graph.value(out).constant || node.op->fold == nullptr ||
      !is_monotone(node.type) || is_float(graph.value(out).dtype) ||
      num_elements(graph.value(out).shape) > kSmall)
    return ok_status();
  std::vector<ValueId> lent;
  bool any_known = false, all_known = true;
  for (const ValueId in : node.inputs) {
    if (in == kNoValue) continue;
    const Value& value = graph.value(in);
    const bool known = value.constant || value.upper;
    any_known = any_known || known;
    all_known = all_known && known;
    if (!value.constant && std::count(lent.begin(), lent.end(), in) == 0) lent.push_back(in);
  }
  const DType type = graph.value(out).dtype;
  const bool one_is_enough = node.type == "Min" && (type == DType::kI64 || type == DType::kI32);
  if (!all_known && !(one_is_enough && any_known)) return ok_status();
  for (const ValueId in : lent) {
    Value& value = graph.value(in);
    value.constant = value.upper ? *value.upper : largest(value);
  }
  Result<std::vector<Tensor>> results = node.op->fold(graph, node);
  for (const ValueId in : lent) graph.value(in).constant.reset();
  HONE_RETURN_IF_ERROR(results.status());
  if (!results->empty() && (all_known || !is_near_the_end((*results)[0])))
    graph.value(out).upper = std::move((*results)[0]);
  return ok_status();
}

}  // namespace

Status add_inferred(Graph& graph, Node node, std::vector<Node>& nodes) {
  const AllocatesFor purpose(name_and_type(node));
  const UsedIf used(graph, node.used_if);
  HONE_ASSIGN_OR_RETURN(const bool passed, follow_aggregates(graph, node));
  if (passed) return ok_status();
  HONE_ASSIGN_OR_RETURN(const bool followed, propagate_dynamic_shapes(graph, node, nodes));
  if (followed) return ok_status();
  if (node.op->expand != nullptr) {
    HONE_RETURN_IF_ERROR(check_node(graph, node));
    ExpandContext context(graph, node, nodes);
    HONE_RETURN_IF_ERROR(node.op->expand(context));
    if (!context.declined()) return context.status();
  }
  // Stages stand at the points of the first result, wanted or not.
  if (!node.outputs.empty() && node.outputs[0] == kNoValue)
    node.outputs[0] = graph.add_value(fmt::format("{}.0", node.name), DType::kF32, {});
  HONE_RETURN_IF_ERROR(infer_node(graph, node));
  HONE_RETURN_IF_ERROR(fold_small(graph, node));
  HONE_RETURN_IF_ERROR(bound_small(graph, node));
  choose_known_elements(graph, node, nodes);
  HONE_RETURN_IF_ERROR(carry_extents(graph, node, nodes));
  if (!all_known(graph, node)) nodes.push_back(std::move(node));
  return ok_status();
}

Status infer_shapes(Graph& graph) {
  std::vector<size_t> ends;
  return infer_shapes(graph, ends);
}

Status infer_shapes(Graph& graph, std::vector<size_t>& ends) {
  const AggregateScope aggregates(graph);
  std::vector<Node> nodes;
  UnsupportedList unsupported;
  std::set<ValueId> unknown;  // what the unsupported nodes would compute, and what is made of it
  for (Node& node : graph.nodes) {
    const std::vector<ValueId> results = node.outputs;
    const bool reads_unknown = std::any_of(node.inputs.begin(), node.inputs.end(),
                                           [&](ValueId in) { return unknown.count(in) > 0; });
    const Status status = reads_unknown ? ok_status() : add_inferred(graph, std::move(node), nodes);
    HONE_RETURN_IF_ERROR(unsupported.add(status));
    if (reads_unknown || !status.ok()) unknown.insert(results.begin(), results.end());
    unknown.erase(kNoValue);
    ends.push_back(graph.values.size());
  }
  HONE_RETURN_IF_ERROR(unsupported.all(graph.file));
  HONE_RETURN_IF_ERROR(check_outputs(graph));
  HONE_RETURN_IF_ERROR(compact_outputs(graph, nodes));
  NodeNames names;
  for (Node& node : nodes) node.name = names.take(node.name, NodeNames::Suffix::kSigns);
  graph.nodes = std::move(nodes);
  return ok_status();
}

}  // namespace hone::graph
