#include "hone/graph/extents.h"

#include <algorithm>

#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// Where a result's extent comes from: a dimension of the operand, or a number.
struct Source {
  bool varies = true;
  int64_t value = 0;
};

std::vector<Source> dims(const Shape& list, bool varies) {
  std::vector<Source> sources;
  for (const int64_t value : list) sources.push_back({varies, value});
  return sources;
}

Shape counting(size_t begin, size_t end) {
  Shape list;
  for (size_t d = begin; d < end; ++d) list.push_back(static_cast<int64_t>(d));
  return list;
}

std::vector<Source> joined(std::vector<Source> a, const std::vector<Source>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Gather of varying indices, or from a varying value with known indices that do not count from
// the end.
Result<std::vector<Source>> gathered(const InferContext& c, size_t operand) {
  const auto axis =
      static_cast<size_t>(*normalize_axis(c.attributes().integer("axis", 0), c.rank(0)));
  const Shape& data = c.shape(0);
  if (operand == 1) {
    const Shape head(data.begin(), data.begin() + static_cast<long>(axis));
    const Shape tail(data.begin() + static_cast<long>(axis) + 1, data.end());
    return joined(joined(dims(head, false), dims(counting(0, c.shape(1).size()), true)),
                  dims(tail, false));
  }
  HONE_ASSIGN_OR_RETURN(const Shape indices, c.integers(1, "the index of a value that varies"));
  if (std::any_of(indices.begin(), indices.end(), [](int64_t i) { return i < 0; }))
    return c.unsupported("an index from the end of a value whose shape depends on data");
  return joined(joined(dims(counting(0, axis), true), dims(c.shape(1), false)),
                dims(counting(axis + 1, data.size()), true));
}

Result<std::vector<Source>> moved(const InferContext& c, const Node& node) {
  const auto rank = static_cast<size_t>(c.rank(0));
  const auto refused = [&] { return c.unsupported("data whose shape depends on other data"); };
  if (node.type == "Transpose") {
    Shape perm = node.attributes.integers("perm");
    if (perm.empty()) {
      perm = counting(0, rank);
      std::reverse(perm.begin(), perm.end());
    }
    return dims(perm, true);
  }
  if (node.type != "Squeeze" && node.type != "Unsqueeze") return refused();
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(1, "axes"));
  if (!axes) return refused();
  const bool adds = node.type == "Unsqueeze";
  const size_t all = adds ? rank + axes->size() : rank;
  std::vector<bool> named(all, false);
  for (const int64_t a : *axes)
    named[static_cast<size_t>(*normalize_axis(a, static_cast<int64_t>(all)))] = true;
  std::vector<Source> sources;
  int64_t next = 0;
  for (size_t d = 0; d < all; ++d) {
    if (adds && named[d]) sources.push_back({false, 1});
    if (!adds && named[d]) ++next;
    if (!named[d]) sources.push_back({true, next++});
  }
  return sources;
}

}  // namespace

Status carry_extents(Graph& graph, const Node& node, std::vector<Node>& nodes) {
  size_t operand = node.inputs.size();
  const InferContext c(graph, node);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.has_input(i) || graph.value(node.inputs[i]).extents == kNoValue) continue;
    const bool other = operand < node.inputs.size() && graph.value(node.inputs[operand]).extents !=
                                                           graph.value(node.inputs[i]).extents;
    if (other) return c.unsupported("two operands whose shapes depend on data");
    operand = i;
  }
  if (operand == node.inputs.size()) return ok_status();
  const Value& from = graph.value(node.inputs[operand]);
  Value& to = graph.value(node.outputs[0]);
  const bool same = node.op->kind == Kind::kElementwise || node.type == "Identity";
  if (same && from.shape == to.shape) {
    to.extents = from.extents;
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Source> sources,
                        node.type == "Gather" ? gathered(c, operand) : moved(c, node));
  // extents = Gather(Concat(operand's extents, numbers), which)
  ExpandContext build(graph, node, nodes);
  Shape numbers, which;
  for (const Source& source : sources) {
    const auto count = static_cast<int64_t>(from.shape.size() + numbers.size());
    which.push_back(source.varies ? source.value : count);
    if (!source.varies) numbers.push_back(source.value);
  }
  ValueId all = from.extents;
  if (!numbers.empty()) {
    all = build.add("Concat", {all, build.integers(numbers)}, {{"axis", int64_t{0}}});
  }
  to.extents = build.add("Gather", {all, build.integers(which)});
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
