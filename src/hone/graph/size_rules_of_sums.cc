// Rules for shapes that vary, of operators that mix elements: products, softmax.
#include <algorithm>
#include <limits>

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

constexpr SizeRuleOf kRules[] = {
    {"MatMul", follow_matmul},   {"Gemm", follow_gemm},          {"Einsum", follow_einsum},
    {"Softmax", follow_softmax}, {"LogSoftmax", follow_softmax},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_sums() { return kRules; }

}  // namespace hone::graph
