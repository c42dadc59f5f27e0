// Rules for shapes that vary, of operators that mix elements: products, softmax, reductions.
#include <algorithm>
#include <limits>

#include "hone/graph/neutral.h"
#include "hone/graph/ops/einsum.h"
#include "hone/graph/passes/rewrite.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Elements beyond the terms of a product are 0 in both factors: 0 times what is undefined may be
// NaN.
void fill_terms(SizeRule& rule, size_t term_of_a, size_t term_of_b) {
  ValueId &a = rule.node.inputs[0], &b = rule.node.inputs[1];
  a = rule.sizes.filled(rule.c, a, {term_of_a}, 0);
  b = rule.sizes.filled(rule.c, b, {term_of_b}, 0);
}

// A vector has no rows or no columns.
Status follow_matmul(SizeRule& rule) {
  ValueId &a = rule.node.inputs[0], &b = rule.node.inputs[1];
  const Shape first = rule.c.shape_of(a), second = rule.c.shape_of(b);
  const ShapeParts of_a = rule.sizes.parts_of(a), of_b = rule.sizes.parts_of(b);
  const size_t batch_a = first.size() < 2 ? 0 : first.size() - 2;
  const size_t batch_b = second.size() < 2 ? 0 : second.size() - 2;
  const size_t batch = std::max(batch_a, batch_b);
  ShapeParts parts = rule.sizes.parts_of(rule.node.outputs[0]);
  for (size_t d = 0; d < batch; ++d) {
    const bool in_a = d + batch_a >= batch && first[d + batch_a - batch] != 1;
    const bool in_b = d + batch_b >= batch && second[d + batch_b - batch] != 1;
    DimParts known;
    if (in_a) known = of_a[d + batch_a - batch];
    if (in_b) HONE_RETURN_IF_ERROR(join_parts(rule, known, of_b[d + batch_b - batch]));
    if (!known.empty()) parts[d] = std::move(known);
  }
  const size_t term_of_b = second.size() < 2 ? 0 : second.size() - 2;
  DimParts terms = of_a[first.size() - 1];
  HONE_RETURN_IF_ERROR(join_parts(rule, terms, of_b[term_of_b]));
  size_t next = batch;
  if (first.size() >= 2) parts[next++] = of_a[first.size() - 2];
  if (second.size() >= 2) parts[next] = of_b[second.size() - 1];
  fill_terms(rule, first.size() - 1, term_of_b);
  // Scores of keys that are not there are numbers, so that a mask can be added to them.
  if (second.size() >= 2 && rule.c.constant_of(b) == nullptr)
    b = rule.sizes.filled(rule.c, b, {second.size() - 1}, 0);
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

// Labels that the result lacks are summed over.
Status follow_einsum(SizeRule& rule) {
  std::vector<Shape> shapes;
  for (const ValueId operand : rule.node.inputs) shapes.push_back(rule.c.shape_of(operand));
  HONE_ASSIGN_OR_RETURN(const EinsumEquation equation,
                        read_equation(rule.node.attributes.text("equation", ""), shapes));
  std::map<char, DimParts> extents;
  for (size_t i = 0; i < shapes.size(); ++i) {
    ValueId& operand = rule.node.inputs[i];
    const std::string& labels = equation.operands[i];
    const ShapeParts parts = rule.sizes.parts_of(operand);
    std::vector<size_t> summed;
    for (size_t d = 0; d < labels.size(); ++d) {
      DimParts& known = extents[labels[d]];
      if (known.empty() || shapes[i][d] != 1)
        HONE_RETURN_IF_ERROR(join_parts(rule, known, parts[d]));
      if (equation.result.find(labels[d]) == std::string::npos) summed.push_back(d);
    }
    operand = rule.sizes.filled(rule.c, operand, summed, 0);
  }
  ShapeParts parts;
  for (const char label : equation.result) parts.push_back(extents[label]);
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

Status follow_gemm(SizeRule& rule) {
  const bool trans_a = rule.node.attributes.integer("transA", 0) != 0;
  const bool trans_b = rule.node.attributes.integer("transB", 0) != 0;
  const ShapeParts of_a = rule.sizes.parts_of(rule.node.inputs[0]);
  const ShapeParts of_b = rule.sizes.parts_of(rule.node.inputs[1]);
  DimParts rows = of_a[trans_a ? 1 : 0], columns = of_b[trans_b ? 0 : 1];
  DimParts terms = of_a[trans_a ? 0 : 1];
  HONE_RETURN_IF_ERROR(join_parts(rule, terms, of_b[trans_b ? 1 : 0]));
  if (rule.node.has_input(2)) {
    const ShapeParts added = rule.sizes.parts_of(rule.node.inputs[2]);
    const Shape& shape = rule.c.shape_of(rule.node.inputs[2]);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != 1)
        HONE_RETURN_IF_ERROR(join_parts(rule, d + 1 == shape.size() ? columns : rows, added[d]));
    }
  }
  fill_terms(rule, trans_a ? 0 : 1, trans_b ? 1 : 0);
  rule.sizes.set_parts(rule.node.outputs[0], {rows, columns});
  return ok_status();
}

size_t axis_of(const SizeRule& rule, int64_t otherwise) {
  return static_cast<size_t>(*normalize_axis(rule.node.attributes.integer("axis", otherwise),
                                             rule.c.rank_of(rule.node.inputs[0])));
}

// Returns whether a constant of the shape of the scores hides each key from the queries before it.
// `hides` tells of an element whether it does.
template <typename Hides>
bool hides_later_keys(const Value& mask, int64_t most, const Hides& hides) {
  const size_t rank = mask.shape.size();
  if (!mask.constant || rank < 2 || mask.shape[rank - 1] != most || mask.shape[rank - 2] != most)
    return false;
  for (int64_t i = 0; i < mask.constant->size(); ++i) {
    if (i % most > i / most % most && !hides(mask.constant->at(i))) return false;
  }
  return true;
}

// Returns whether scores, a scaled product with one constant mask, are so low where a key comes
// behind the query that they do not count. A query of a run then sees no key that the run does not
// have, and the triangle stays one for attention as one kernel.
bool sees_earlier_keys_only(SizeRule& rule, ValueId scores) {
  constexpr double kMasked = -1e30;  // what stands for minus infinity is at most this
  const Graph& graph = rule.sizes.graph();
  const ShapeParts parts = rule.sizes.parts_of(scores);
  const size_t rank = parts.size();
  if (rank < 2 || parts[rank - 1].size() != 1 || parts[rank - 2].size() != 1 ||
      parts[rank - 1][0].form != parts[rank - 2][0].form)
    return false;
  const int64_t most = parts[rank - 1][0].most;
  const Node* node = rule.sizes.producer(scores);
  ValueId inner = kNoValue;
  const bool selects = node != nullptr && node->type == "Where";
  const bool adds = node != nullptr && node->type == "Add";
  for (size_t i = 0; (selects || adds) && i < 2; ++i) {  // another node may have one operand only
    const ValueId other = node->inputs[selects ? 2 - i : 1 - i];
    if (selects) {
      const auto masked = uniform_constant(graph.value(other));
      const double hidden = i == 0 ? 0 : 1;  // the condition where the other one is taken
      if (masked && *masked <= kMasked &&
          hides_later_keys(graph.value(node->inputs[0]), most,
                           [&](double condition) { return condition == hidden; }))
        inner = node->inputs[1 + i];
    } else if (hides_later_keys(graph.value(other), most, [](double x) { return x <= kMasked; })) {
      inner = node->inputs[i];
    }
  }
  for (node = rule.sizes.producer(inner); node != nullptr; node = rule.sizes.producer(inner)) {
    if (node->type == "MatMul") return true;
    if (node->type != "Mul" && node->type != "Div") return false;
    const size_t i = graph.value(node->inputs[0]).constant ? 1 : 0;
    const bool scales = node->type == "Mul" || i == 0;
    if (!scales || !uniform_constant(graph.value(node->inputs[1 - i]))) return false;
    inner = node->inputs[i];
  }
  return false;
}

Status follow_softmax(SizeRule& rule) {
  const bool flattens = rule.c.opset() < 13;
  const size_t axis = axis_of(rule, flattens ? 1 : -1);
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  const size_t rank = rule.c.shape_of(x).size();
  std::vector<size_t> dims;
  for (size_t d = axis; d < (flattens ? rank : axis + 1); ++d) dims.push_back(d);
  const bool hidden = dims == std::vector{rank - 1} && sees_earlier_keys_only(rule, x);
  if (!hidden) rule.node.inputs[0] = rule.sizes.filled(rule.c, x, dims, -kInfinity);
  rule.sizes.set_parts(out, rule.sizes.parts_of(x));
  for (const size_t d : dims) {
    if (rule.node.type == "Softmax" && rule.sizes.varies(x, d)) rule.sizes.set_zero_beyond(out, d);
  }
  return ok_status();
}

// Which dimensions a reduction reduces.
Result<std::vector<bool>> reduced_dims(SizeRule& rule) {
  HONE_ASSIGN_OR_RETURN(const auto axes, rule.c.integers_or_attribute(1, "axes"));
  const bool all = !axes || axes->empty();
  const int64_t rank = rule.c.rank_of(rule.node.inputs[0]);
  std::vector<bool> reduced(static_cast<size_t>(rank),
                            all && rule.node.attributes.integer("noop_with_empty_axes", 0) == 0);
  for (size_t i = 0; !all && i < axes->size(); ++i)
    reduced[static_cast<size_t>(*normalize_axis((*axes)[i], rank))] = true;
  return reduced;
}

// The number that changes nothing in a reduction of this kind.
double neutral_in(std::string_view type, DType dtype) {
  if (type == "ReduceProd") return 1;
  const bool least = type == "ReduceMax" || type == "ArgMax" || type == "ReduceLogSumExp";
  const bool most = type == "ReduceMin" || type == "ArgMin";
  return neutral_of(dtype, least ? -1 : most ? 1 : 0);
}

ShapeParts parts_of_reduced(const SizeRule& rule, const std::vector<bool>& reduced, bool keep) {
  const ShapeParts from = rule.sizes.parts_of(rule.node.inputs[0]);
  ShapeParts parts;
  for (size_t d = 0; d < from.size(); ++d) {
    if (!reduced[d]) parts.push_back(from[d]);
    if (reduced[d] && keep) parts.push_back({{kNoForm, 1}});
  }
  return parts;
}

Status follow_reduction(SizeRule& rule) {
  HONE_ASSIGN_OR_RETURN(const std::vector<bool> reduced, reduced_dims(rule));
  const ValueId x = rule.node.inputs[0];
  const bool keep = rule.node.attributes.integer("keepdims", 1) != 0;
  std::vector<size_t> dims;
  bool mixes = false;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d]) continue;
    dims.push_back(d);
    mixes = mixes || rule.sizes.varies(x, d);
  }
  ShapeParts parts = parts_of_reduced(rule, reduced, keep);
  if (mixes && rule.node.type == "ReduceMean") {
    build_mean(rule, x, dims, keep);
  } else if (mixes) {
    rule.node.inputs[0] =
        rule.sizes.filled(rule.c, x, dims, neutral_in(rule.node.type, rule.c.dtype_of(x)));
  }
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

// The number that is filled in is no more than any element, so it is found where all elements of a
// run are as little, and the last one of these is the last one of the run.
Status follow_arg(SizeRule& rule) {
  const size_t axis = axis_of(rule, 0);
  HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], axis));
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  std::vector<bool> reduced(rule.c.shape_of(x).size(), false);
  reduced[axis] = true;
  ShapeParts parts =
      parts_of_reduced(rule, reduced, rule.node.attributes.integer("keepdims", 1) != 0);
  const ValueId given =
      rule.sizes.filled(rule.c, x, {axis}, neutral_in(rule.node.type, rule.c.dtype_of(x)));
  rule.node.inputs[0] = given;
  if (rule.sizes.varies(x, axis) && rule.node.attributes.integer("select_last_index", 0) != 0) {
    const ValueId last =
        rule.c.binary("Add", rule.sizes.extent_of(rule.c, rule.sizes.parts_of(x)[axis]), -1.0);
    rule.c.result(0, rule.c.binary("Min", rule.c.add_like(rule.node, {given}), last));
    rule.replaced = true;
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"MatMul", follow_matmul},
    {"Gemm", follow_gemm},
    {"Einsum", follow_einsum},
    {"Softmax", follow_softmax},
    {"LogSoftmax", follow_softmax},
    {"ReduceSum", follow_reduction, 0b10},
    {"ReduceMean", follow_reduction, 0b10},
    {"ReduceProd", follow_reduction, 0b10},
    {"ReduceMax", follow_reduction, 0b10},
    {"ReduceMin", follow_reduction, 0b10},
    {"ReduceL1", follow_reduction, 0b10},
    {"ReduceL2", follow_reduction, 0b10},
    {"ReduceSumSquare", follow_reduction, 0b10},
    {"ReduceLogSum", follow_reduction, 0b10},
    {"ReduceLogSumExp", follow_reduction, 0b10},
    {"ArgMax", follow_arg},
    {"ArgMin", follow_arg},
};

}  // namespace

ValueId mean_of(SizeRule& rule, ValueId x, const std::vector<size_t>& dims, bool keep) {
  ExpandContext& c = rule.c;
  ValueId count = kNoValue;
  std::vector<int64_t> axes;
  for (const size_t d : dims) {
    axes.push_back(static_cast<int64_t>(d));
    const ValueId extent = rule.sizes.extent_of(c, rule.sizes.parts_of(x)[d]);
    count = count == kNoValue ? extent : c.binary("Mul", count, extent);
  }
  const ValueId sum = c.reduce("ReduceSum", rule.sizes.filled(c, x, dims, 0), axes, keep);
  return c.binary("Div", sum, c.cast(count, c.dtype_of(x)));
}

ValueId widened(SizeRule& rule, ValueId x) {
  const DType dtype = rule.c.dtype_of(x);
  if (!is_float(dtype) || dtype == DType::kF64 || dtype == DType::kF32) return x;
  const ValueId wide = rule.c.cast(x, DType::kF32);
  rule.sizes.set_parts(wide, rule.sizes.parts_of(x));
  return wide;
}

void build_mean(SizeRule& rule, ValueId x, const std::vector<size_t>& dims, bool keep) {
  const ValueId mean = mean_of(rule, widened(rule, x), dims, keep);
  rule.c.result(0, rule.c.cast(mean, rule.c.dtype_of(x)));
  rule.replaced = true;
}

std::span<const SizeRuleOf> size_rules_of_sums() { return kRules; }

}  // namespace hone::graph
