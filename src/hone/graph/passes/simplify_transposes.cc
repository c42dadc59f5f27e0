// Rules that remove transposes: at products, and where two meet around elementwise operators.
#include <algorithm>

#include "hone/graph/passes/simplify_rules.h"

namespace hone::graph {
namespace {

// Gemm reads either operand transposed.
Result<bool> transpose_at_gemm(const RewriteSite& site) {
  if (site.node().type != "Gemm") return false;
  for (const size_t i : {0, 1}) {
    const Node* transpose = site.maker(site.node().inputs[i]);
    if (transpose == nullptr || transpose->type != "Transpose" ||
        permutation_of(site.graph, *transpose) != Shape{1, 0})
      continue;
    const char* name = i == 0 ? "transA" : "transB";
    replace_operand(site, i, transpose->inputs[0]);
    Node& node = site.graph.nodes[site.index];
    node.attributes.set(name, int64_t{node.attributes.integer(name, 0) == 0});
    return true;
  }
  return false;
}

// Tells whether a transposed value exists without moving data, as the value comes from the inverse
// transpose, possibly through elementwise operators that have no other use.
class Untransposed {
 public:
  Untransposed(const RewriteSite& site, Shape perm) : site_(site), perm_(std::move(perm)) {}

  [[nodiscard]] bool exists(ValueId id, int depth) const {
    const Value& value = site_.graph.value(id);
    // A constant of one element is broadcast in any order.
    if (value.constant) return value.constant->size() == 1 && value.shape.size() <= perm_.size();
    const Node* node = site_.maker(id);
    if (node == nullptr || value.shape.size() != perm_.size()) return false;
    if (node->type == "Transpose") return cancels(*node);
    if (depth == 0 || node->op->kind != Kind::kElementwise || node->outputs.size() != 1 ||
        node->type == "BatchNormalization" || site_.sole_maker(id) == nullptr)
      return false;
    return std::all_of(node->inputs.begin(), node->inputs.end(),
                       [&](ValueId in) { return in == kNoValue || exists(in, depth - 1); });
  }

  // Builds it; exists() has said that it can be.
  ValueId build(ExpandContext& c, ValueId id) const {
    if (id == kNoValue || site_.graph.value(id).constant) return id;
    const Node& node = *site_.maker(id);
    if (node.type == "Transpose") return node.inputs[0];
    std::vector<ValueId> operands;
    for (const ValueId in : node.inputs) operands.push_back(build(c, in));
    return c.add_like(node, operands);
  }

 private:
  [[nodiscard]] bool cancels(const Node& node) const {
    const Shape first = permutation_of(site_.graph, node);
    for (size_t i = 0; i < perm_.size(); ++i) {
      if (first[static_cast<size_t>(perm_[i])] != static_cast<int64_t>(i)) return false;
    }
    return true;
  }

  const RewriteSite& site_;
  Shape perm_;
};

Result<bool> transposes_around_elementwise(const RewriteSite& site) {
  constexpr int kMaxDepth = 8;
  if (site.node().type != "Transpose") return false;
  const ValueId x = site.node().inputs[0];
  const Untransposed behind(site, permutation_of(site.graph, site.node()));
  const Node* node = site.maker(x);
  if (node == nullptr || node->type == "Transpose" || !behind.exists(x, kMaxDepth)) return false;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) { return behind.build(c, x); }));
  return true;
}

}  // namespace

std::span<const Rule> transpose_rules() {
  static constexpr Rule kRules[] = {
      {"transpose_at_gemm", transpose_at_gemm},
      {"transposes_around_elementwise", transposes_around_elementwise}};
  return kRules;
}

}  // namespace hone::graph
