#include "hone/graph/extents.h"

#include <algorithm>

#include "hone/graph/integer_at.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

std::vector<ExtentPart> parts_of(ValueId extents, const Shape& dims) {
  std::vector<ExtentPart> parts;
  for (const int64_t dim : dims) parts.push_back({extents, dim});
  return parts;
}

// Transpose, Squeeze, Unsqueeze: which dimension of the operand each of the result's is.
Result<std::vector<ExtentPart>> moved(const InferContext& c, const Node& node, ValueId extents) {
  const auto rank = static_cast<size_t>(c.rank(0));
  const auto refused = [&] { return c.unsupported("data whose shape depends on other data"); };
  if (node.type == "Transpose") {
    Shape perm = node.attributes.integers("perm");
    for (size_t d = rank; perm.size() < rank; --d) perm.push_back(static_cast<int64_t>(d) - 1);
    return parts_of(extents, perm);
  }
  if (node.type != "Squeeze" && node.type != "Unsqueeze") return refused();
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(1, "axes"));
  if (!axes) return refused();
  const bool adds = node.type == "Unsqueeze";
  const size_t all = adds ? rank + axes->size() : rank;
  std::vector<bool> named(all, false);
  for (const int64_t a : *axes)
    named[static_cast<size_t>(*normalize_axis(a, static_cast<int64_t>(all)))] = true;
  std::vector<ExtentPart> parts;
  int64_t next = 0;
  for (size_t d = 0; d < all; ++d) {
    if (adds && named[d]) parts.push_back({kNoValue, 1});
    if (!adds && named[d]) ++next;
    if (!named[d]) parts.push_back({extents, next++});
  }
  return parts;
}

// Operands that vary are taken to have the extents that their largest shapes suggest: equal where
// those are equal.
std::vector<ExtentPart> broadcast_parts(const Graph& graph, const Node& node) {
  const Shape& shape = graph.value(node.outputs[0]).shape;
  std::vector<ExtentPart> parts;
  for (const int64_t extent : shape) parts.push_back({kNoValue, extent});
  for (size_t i = node.inputs.size(); i-- > 0;) {
    if (!node.has_input(i) || graph.value(node.inputs[i]).extents == kNoValue) continue;
    const Value& from = graph.value(node.inputs[i]);
    const size_t missing = shape.size() - from.shape.size();
    for (size_t d = 0; d < from.shape.size(); ++d) {
      if (from.shape[d] == shape[missing + d])
        parts[missing + d] = {from.extents, static_cast<int64_t>(d)};
    }
  }
  return parts;
}

}  // namespace

ValueId join_extents(ExpandContext& c, const std::vector<ExtentPart>& parts) {
  if (parts.empty()) return c.integers({});  // of a value of rank 0
  std::vector<ValueId> sources;
  std::vector<int64_t> starts;
  int64_t total = 0;
  Shape numbers, which;
  for (const ExtentPart& part : parts) {
    if (part.extents == kNoValue) continue;
    if (std::count(sources.begin(), sources.end(), part.extents) > 0) continue;
    sources.push_back(part.extents);
    starts.push_back(total);
    total += c.shape_of(part.extents)[0];
  }
  for (const ExtentPart& part : parts) {
    const auto at = std::find(sources.begin(), sources.end(), part.extents);
    const bool is_number = at == sources.end();
    which.push_back(is_number ? total + std::ssize(numbers)
                              : starts[static_cast<size_t>(at - sources.begin())] + part.dim);
    if (is_number) numbers.push_back(part.dim);
  }
  if (!numbers.empty()) sources.push_back(c.integers(numbers));
  const ValueId all =
      sources.size() == 1 ? sources[0] : c.add("Concat", sources, {{"axis", int64_t{0}}});
  return c.add("Gather", {all, c.integers(which)});
}

ValueId without_extents(ExpandContext& c, ValueId x) {
  if (c.extents_of(x) == kNoValue) return x;
  const ValueId plain = c.add("Identity", {x});
  c.set_extents(plain, kNoValue);
  return plain;
}

ValueId actual_extents(ExpandContext& c, ValueId x) {
  return c.extents_of(x) != kNoValue ? c.extents_of(x) : c.integers(c.shape_of(x));
}

Status carry_extents(Graph& graph, const Node& node, std::vector<Node>& nodes) {
  size_t operand = node.inputs.size();
  for (size_t i = node.inputs.size(); i-- > 0;) {
    if (node.has_input(i) && graph.value(node.inputs[i]).extents != kNoValue) operand = i;
  }
  if (operand == node.inputs.size()) return ok_status();
  ExpandContext build(graph, node, nodes);
  const Value& from = graph.value(node.inputs[operand]);
  const Shape& shape = graph.value(node.outputs[0]).shape;
  const bool pointwise = node.op->kind == Kind::kElementwise || node.type == "Identity";
  if (pointwise && from.shape == shape) {
    build.set_extents(node.outputs[0], from.extents);
    if (node.type == "Identity") graph.value(node.outputs[0]).slice = from.slice;
    return ok_status();
  }
  std::vector<ExtentPart> parts;
  if (pointwise) {
    parts = broadcast_parts(graph, node);
  } else {
    HONE_ASSIGN_OR_RETURN(parts, moved(build, node, from.extents));
  }
  const ValueId extents = join_extents(build, parts);
  // Extents that are known and those of the value say nothing.
  const Tensor* const known = build.constant_of(extents);
  bool are_largest = known != nullptr;
  for (size_t d = 0; d < shape.size() && are_largest; ++d)
    are_largest = integer_at(*known, static_cast<int64_t>(d)) == shape[d];
  if (!are_largest) build.set_extents(node.outputs[0], extents);
  return build.status();
}

Status compact_outputs(Graph& graph, std::vector<Node>& nodes) {
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId data = graph.outputs[i];
    const Value value = graph.value(data);
    if (value.extents == kNoValue) continue;
    if (num_elements(value.shape) == 0) {
      return error(Code::kUnsupported,
                   "{}: the output '{}' has no elements and a shape that depends on data",
                   graph.file, value.name);
    }
    Node compact;
    compact.name = value.name + ".dense";
    compact.type = "hone.Compact";
    compact.op = find_op(compact.type, kMaxOpset);
    compact.opset = kMaxOpset;
    compact.inputs = {data, value.extents};
    for (const char* suffix : {".dense", ".shape"})
      compact.outputs.push_back(graph.add_value(value.name + suffix, DType::kF32, {}));
    HONE_RETURN_IF_ERROR(infer_node(graph, compact));
    graph.outputs[i] = compact.outputs[0];
    nodes.push_back(std::move(compact));
  }
  return ok_status();
}

ValueId with_extents(ExpandContext& c, ValueId data, ValueId extents) {
  const Tensor* known = c.constant_of(extents);
  if (known == nullptr) {
    // A node of its own: `data` may be read without its extents.
    const ValueId varying = c.add("Identity", {data});
    c.set_extents(varying, extents);
    return varying;
  }
  for (int64_t d = 0; d < c.rank_of(data); ++d)
    data = c.slice(data, d, 0, static_cast<int64_t>(known->at(d)));
  return data;
}

}  // namespace hone::graph
