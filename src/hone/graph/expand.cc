#include "hone/graph/expand.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/registry.h"
#include "hone/tensor/fill.h"

namespace hone::graph {

namespace {

// Returns whether extents of a node's results may be those of a value that stands for the largest.
bool has_extents_of_largest(const Graph& graph, const Node& node) {
  static constexpr std::string_view kOfFirst[] = {"Pad",     "Reshape", "Slice",    "Split",
                                                  "Squeeze", "Tile",    "Unsqueeze"};
  const bool of_first =  // other operands are shapes, axes and places
      node.type.starts_with("Reduce") ||
      std::find(std::begin(kOfFirst), std::end(kOfFirst), node.type) != std::end(kOfFirst);
  const auto end = of_first && !node.inputs.empty() ? node.inputs.begin() + 1 : node.inputs.end();
  return std::any_of(node.inputs.begin(), end,
                     [&](ValueId in) { return in != kNoValue && graph.value(in).is_of_largest; });
}

}  // namespace

// Messages about a node that is made here name the one that it is made for.
void ExpandContext::set_origin(Node& made) {
  const Node& given = node();
  if (given.made_for != nullptr || (made.name == given.name && made.type == given.type)) {
    made.made_for = given.made_for;
    return;
  }
  if (made_for_ == nullptr) made_for_ = std::make_shared<const std::string>(name_and_type(given));
  made.made_for = made_for_;
}

ValueId ExpandContext::input(size_t i) const {
  return i < node().inputs.size() ? node().inputs[i] : kNoValue;
}

ValueId ExpandContext::placeholder() {
  return graph().add_value("placeholder", DType::kF32, Shape(8, 1));
}

std::vector<ValueId> ExpandContext::append(Node made, std::vector<ValueId> inputs, size_t results) {
  std::vector<ValueId> outputs;
  if (!status_.ok()) {
    for (size_t i = 0; i < results; ++i) outputs.push_back(placeholder());
    return outputs;
  }
  if (made.name.empty()) made.name = fmt::format("{}#{}", node().name, nodes_.size());
  made.inputs = std::move(inputs);
  while (!made.inputs.empty() && made.inputs.back() == kNoValue) made.inputs.pop_back();
  for (size_t i = 0; i < results; ++i) {
    outputs.push_back(graph().add_value(fmt::format("{}.{}", made.name, i), DType::kF32, {}));
  }
  made.outputs = outputs;
  set_origin(made);
  const bool is_of_largest = has_extents_of_largest(graph(), made);
  status_ = add_inferred(graph(), std::move(made), nodes_);
  for (ValueId& id : outputs) {
    if (!status_.ok()) id = placeholder();
    graph().value(id).is_of_largest = is_of_largest;
  }
  return outputs;
}

std::vector<ValueId> ExpandContext::add_all(const char* type, std::vector<ValueId> inputs,
                                            size_t results, NamedAttributes attributes) {
  Node made;
  made.type = type;
  made.op = find_op(type, kMaxOpset);
  made.opset = kMaxOpset;
  HONE_ASSERT(made.op != nullptr, "an expansion uses operators that there are");
  for (const auto& [name, value] : attributes) made.attributes.set(name, value);
  return append(std::move(made), std::move(inputs), results);
}

ValueId ExpandContext::add_like(const Node& node, std::vector<ValueId> inputs) {
  return add_all_like(node, std::move(inputs))[0];
}

std::vector<ValueId> ExpandContext::add_all_like(const Node& node, std::vector<ValueId> inputs) {
  Node made;
  made.name = node.name;
  made.type = node.type;
  made.op = node.op;
  made.opset = node.opset;
  made.attributes = node.attributes;
  return append(std::move(made), std::move(inputs), std::max<size_t>(node.outputs.size(), 1));
}

ValueId ExpandContext::add(const char* type, std::vector<ValueId> inputs,
                           NamedAttributes attributes) {
  return add_all(type, std::move(inputs), 1, attributes)[0];
}

ValueId ExpandContext::constant(Tensor tensor) {
  const bool has_extents = tensor.size() > 1;
  const ValueId made = given_constant(*this, std::move(tensor));
  graph().value(made).is_of_largest = has_extents;
  return made;
}

ValueId given_constant(ExpandContext& c, Tensor tensor) {
  return c.graph().add_constant(fmt::format("{}.constant", c.node().name), std::move(tensor));
}

ValueId ExpandContext::filled_constant(DType dtype, const Shape& shape,
                                       const std::function<void(Tensor&)>& fill) {
  if (!status_.ok()) return placeholder();
  Result<Tensor> tensor = new_constant(dtype, shape);
  fail_expansion(tensor.status());
  if (!tensor.ok()) return placeholder();
  fill(*tensor);
  return constant(std::move(tensor).value());
}

ValueId constant_by(ExpandContext& c, DType dtype, const Shape& shape,
                    const std::function<double(int64_t)>& element) {
  return c.filled_constant(dtype, shape, [&](Tensor& tensor) {
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, element(i));
  });
}

ValueId uniform(ExpandContext& c, DType dtype, const Shape& shape, double element) {
  return c.filled_constant(dtype, shape, [&](Tensor& tensor) {
    if (element == 0) return;
    Tensor one(dtype, {});
    one.set(0, element);
    fill_with(tensor, one);
  });
}

ValueId numbers_from_0(ExpandContext& c, DType dtype, const Shape& shape) {
  return constant_by(c, dtype, shape, [](int64_t i) { return static_cast<double>(i); });
}

ValueId numbers_from_0(ExpandContext& c, int64_t count) {
  return numbers_from_0(c, DType::kI64, {count});
}

ValueId ExpandContext::scalar(DType dtype, double value) {
  Tensor tensor(dtype, {});
  tensor.set(0, value);
  return constant(std::move(tensor));
}

ValueId ExpandContext::integers(const std::vector<int64_t>& list) {
  Tensor tensor(DType::kI64, {static_cast<int64_t>(list.size())});
  std::copy(list.begin(), list.end(), tensor.as<int64_t>().begin());
  return constant(std::move(tensor));
}

namespace {

// Returns where a shape has dimensions of one element that another one has not, if that is all in
// which they differ.
std::optional<std::vector<int64_t>> added_dims(const Shape& from, const Shape& shape) {
  std::vector<int64_t> ones;
  size_t next = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (next < from.size() && from[next] == shape[d])
      ++next;
    else if (shape[d] == 1)
      ones.push_back(static_cast<int64_t>(d));
    else
      return std::nullopt;
  }
  if (next != from.size()) return std::nullopt;
  return ones;
}

}  // namespace

ValueId ExpandContext::reshape(ValueId x, const Shape& shape) {
  if (shape_of(x) == shape) return x;
  if (extents_of(x) == kNoValue)
    return add("Reshape", {x, integers(shape)}, {{"allowzero", int64_t{1}}});
  if (const auto axes = added_dims(shape_of(x), shape))
    return add("Unsqueeze", {x, integers(*axes)});
  fail_expansion(unsupported("data whose shape depends on other data"));
  return placeholder();
}

ValueId ExpandContext::transpose(ValueId x, const std::vector<int64_t>& perm) {
  return std::is_sorted(perm.begin(), perm.end()) ? x : add("Transpose", {x}, {{"perm", perm}});
}

ValueId ExpandContext::cast(ValueId x, DType dtype) {
  return dtype_of(x) == dtype ? x : add("Cast", {x}, {{"to", static_cast<int64_t>(dtype)}});
}

ValueId ExpandContext::slice(ValueId x, int64_t axis, int64_t begin, int64_t end, int64_t step) {
  return add("Slice", {x, integers({begin}), integers({end}), integers({axis}), integers({step})});
}

ValueId ExpandContext::reduce(const char* type, ValueId x, const std::vector<int64_t>& axes,
                              bool keep) {
  return add(type, {x, integers(axes)}, {{"keepdims", int64_t{keep}}});
}

ValueId ExpandContext::binary(const char* type, ValueId a, double b) {
  return add(type, {a, scalar(dtype_of(a), b)});
}

void ExpandContext::set_extents(ValueId id, ValueId extents) {
  graph().value(id).extents = extents;
  graph().value(id).slice.reset();
  if (extents == kNoValue || graph().value(extents).constant) return;
  const Shape& most = graph().value(id).shape;
  Tensor upper(DType::kI64, {static_cast<int64_t>(most.size())});
  std::copy(most.begin(), most.end(), upper.as<int64_t>().begin());
  std::vector<bool> is_upper;
  for (int64_t d = 0; d < std::ssize(most); ++d) {
    const auto known = known_element(graph(), nodes_, {extents, d});
    is_upper.push_back(known == most[static_cast<size_t>(d)]);
  }
  graph().value(extents).upper = std::move(upper);
  graph().value(extents).is_upper = std::move(is_upper);
}

std::vector<ValueId> ExpandContext::inline_body(const SubgraphBody& body,
                                                const std::vector<ValueId>& arguments) {
  constexpr size_t kMaxNodes = 200'000;
  std::vector<ValueId> values(body.names.size(), kNoValue);
  std::vector<ValueId> outputs(body.outputs.size(), kNoValue);
  if (arguments.size() != body.inputs.size()) {
    fail_expansion(
        fail("its body has {} inputs, expected {}", body.inputs.size(), arguments.size()));
  }
  for (size_t i = 0; status_.ok() && i < arguments.size(); ++i)
    values[static_cast<size_t>(body.inputs[i])] = arguments[i];
  for (const auto& [local, operand] : body.captures)
    values[static_cast<size_t>(local)] = node().inputs[operand];
  for (const auto& [local, tensor] : body.constants)
    values[static_cast<size_t>(local)] = given_constant(*this, tensor);
  for (const Node& from : body.nodes) {
    if (!status_.ok()) break;
    if (nodes_.size() > kMaxNodes) {
      fail_expansion(unsupported("more than {} nodes after its body was unrolled", kMaxNodes));
      break;
    }
    Node made = from;
    made.name = fmt::format("{}/{}", node().name, from.name);
    if (made.opset == 0) made.opset = opset();
    for (ValueId& in : made.inputs) {
      if (in != kNoValue) in = values[static_cast<size_t>(in)];
    }
    for (ValueId& out : made.outputs) {
      if (out == kNoValue) continue;
      const auto local = static_cast<size_t>(out);
      out =
          graph().add_value(fmt::format("{}/{}", node().name, body.names[local]), DType::kF32, {});
      values[local] = out;
    }
    status_ = add_inferred(graph(), std::move(made), nodes_);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = status_.ok() ? values[static_cast<size_t>(body.outputs[i])] : placeholder();
  }
  return outputs;
}

Result<std::vector<ValueId>> ExpandContext::outputs_of(const SubgraphBody& body,
                                                       const std::vector<ValueId>& arguments) {
  std::vector<Node> not_built;
  const NodesBefore before(graph(), nodes_);
  ExpandContext apart(graph(), node(), not_built);
  std::vector<ValueId> outputs = apart.inline_body(body, arguments);
  HONE_RETURN_IF_ERROR(apart.status());
  return outputs;
}

bool ExpandContext::wants(size_t i) const {
  return i < node().outputs.size() && node().outputs[i] != kNoValue;
}

void ExpandContext::result(size_t i, ValueId value) {
  if (!wants(i) || !status_.ok()) return;
  Node same;
  same.name = fmt::format("{}#{}", node().name, nodes_.size());
  same.type = "Identity";
  same.op = find_op("Identity", kMaxOpset);
  same.opset = kMaxOpset;
  same.inputs = {value};
  same.outputs = {node().outputs[i]};
  set_origin(same);
  status_ = add_inferred(graph(), std::move(same), nodes_);
}

}  // namespace hone::graph
