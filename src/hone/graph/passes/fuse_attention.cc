// softmax(Q K scale + mask) V, written as products and elementwise operators, as one operator.
#include <algorithm>
#include <cmath>

#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

constexpr double kMasked = -1e30;  // what stands for minus infinity is at most this

// A summand of the scores: a value, or `masked` where a condition does not hold (holds).
struct Mask {
  ValueId value = kNoValue;
  ValueId condition = kNoValue;
  bool masks_where_true = false;
  double masked = 0;
};

struct Scores {
  const Node* product = nullptr;
  double scale = 1;
  std::vector<Mask> masks;  // the last one is added first
};

// Follows a chain of scalings and masks from the softmax back to the product.
class ScoresMatch {
 public:
  ScoresMatch(const RewriteSite& site, ValueId scores) : site_(site), at_(scores) {}

  std::optional<Scores> run() {
    const Shape shape = site_.graph.value(at_).shape;
    for (int step = 0; step < 8; ++step) {
      const Node* node = site_.sole_maker(at_);
      if (node == nullptr || site_.graph.value(at_).shape != shape) return std::nullopt;
      if (node->type == "MatMul") {
        scores_.product = node;
        return scores_;
      }
      if (!(node->type == "Where" ? where(*node) : binary(*node, shape))) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool leads_to_product(ValueId id, const Shape& shape) const {
    const Node* node = id == kNoValue ? nullptr : site_.sole_maker(id);
    if (node == nullptr || site_.graph.value(id).shape != shape) return false;
    static constexpr std::string_view kChain[] = {"MatMul", "Mul", "Div", "Add", "Where"};
    return std::find(std::begin(kChain), std::end(kChain), node->type) != std::end(kChain);
  }

  bool binary(const Node& node, const Shape& shape) {
    const bool adds = node.type == "Add", divides = node.type == "Div";
    if (!adds && !divides && node.type != "Mul") return false;
    for (const size_t i : {0, 1}) {
      if (divides && i == 1) continue;
      const ValueId inner = node.inputs[i], other = node.inputs[1 - i];
      if (!leads_to_product(inner, shape)) continue;
      const auto factor = uniform_constant(site_.graph.value(other));
      if (adds) {
        if (scores_.scale != 1 || site_.graph.value(other).dtype != site_.graph.value(inner).dtype)
          continue;
        scores_.masks.push_back({.value = other});
      } else if (!factor || *factor == 0) {
        continue;
      } else {
        scores_.scale *= divides ? 1 / *factor : *factor;
      }
      at_ = inner;
      return true;
    }
    return false;
  }

  bool where(const Node& node) {
    if (scores_.scale != 1) return false;
    for (const size_t i : {1, 2}) {
      const auto masked = uniform_constant(site_.graph.value(node.inputs[3 - i]));
      if (!masked || !(*masked <= kMasked)) continue;
      scores_.masks.push_back(
          {.condition = node.inputs[0], .masks_where_true = i == 2, .masked = *masked});
      at_ = node.inputs[i];
      return true;
    }
    return false;
  }

  const RewriteSite& site_;
  ValueId at_;
  Scores scores_;
};

bool same_batch(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
}

// A condition of a graph that varies hides what was added before it, which may be undefined.
ValueId sum_of_masks(ExpandContext& c, const Scores& scores, DType dtype, bool varying) {
  ValueId sum = kNoValue;
  for (size_t i = scores.masks.size(); i-- > 0;) {
    const Mask& mask = scores.masks[i];
    const bool hides = varying && mask.value == kNoValue && sum != kNoValue;
    ValueId value = mask.value;
    if (value == kNoValue) {
      const ValueId none = hides ? sum : c.scalar(dtype, 0), all = c.scalar(dtype, mask.masked);
      value = mask.masks_where_true ? c.add("Where", {mask.condition, all, none})
                                    : c.add("Where", {mask.condition, none, all});
    }
    sum = sum == kNoValue || hides ? value : c.binary("Add", sum, value);
  }
  return sum;
}

Result<bool> attention(const RewriteSite& site) {
  const Node& node = site.node();
  if (node.type != "MatMul" || !is_float(site.result().dtype)) return false;
  const Node* softmax = site.sole_maker(node.inputs[0]);
  if (softmax == nullptr || softmax->type != "Softmax") return false;
  const Shape shape = site.operand(0).shape;
  const int opset = softmax->opset == 0 ? site.graph.opset : softmax->opset;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = softmax->attributes.integer("axis", opset < 13 ? 1 : -1);
  if (rank < 2 || normalize_axis(axis, rank) != rank - 1) return false;
  auto scores = ScoresMatch(site, softmax->inputs[0]).run();
  if (!scores) return false;
  const ValueId query = scores->product->inputs[0], key = scores->product->inputs[1];
  const ValueId value = node.inputs[1];
  const Shape& q = site.graph.value(query).shape;
  if (!same_batch(q, site.graph.value(key).shape) || !same_batch(q, site.graph.value(value).shape))
    return false;
  for (const Mask& mask : scores->masks) {
    const ValueId id = mask.value != kNoValue ? mask.value : mask.condition;
    if (broadcast(shape, site.graph.value(id).shape) != shape) return false;
  }
  const DType dtype = site.graph.value(query).dtype;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    std::vector<ValueId> operands = {query, key, value};
    const bool varying = site.graph.varying.any();
    if (const ValueId mask = sum_of_masks(c, *scores, dtype, varying); mask != kNoValue)
      operands.push_back(mask);
    return c.add("hone.Attention", operands, {{"scale", static_cast<float>(scores->scale)}});
  }));
  return true;
}

// A constant mask in which query m sees no key beyond m + offset, and each query sees some key.
struct Triangle {
  int64_t offset = 0;
  bool only = true;  // and nothing is added to the scores of the others
};

std::optional<Triangle> triangle_of(const Tensor& mask, int64_t queries, int64_t keys) {
  const Shape& shape = mask.shape();
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] != queries || shape[rank - 1] != keys || queries < 2)
    return std::nullopt;
  const int64_t rows = mask.size() / keys;
  Triangle found{.offset = 0};
  for (int64_t row = 0; row < rows; ++row) {
    int64_t last = keys - 1;
    while (last >= 0 && !(mask.at(row * keys + last) > kMasked)) --last;
    if (last < 0) return std::nullopt;  // all keys count there, or none does
    found.offset = std::max(found.offset, last - row % queries);
  }
  int64_t hidden = 0;
  for (int64_t query = 0; query < queries; ++query)
    hidden += std::max<int64_t>(0, keys - 1 - query - found.offset);
  if (hidden * 8 < queries * keys) return std::nullopt;  // not worth a test of each score
  for (int64_t i = 0; i < mask.size() && found.only; ++i)
    found.only = i % keys > i / keys % queries + found.offset || mask.at(i) == 0;
  return found;
}

// Scores far beyond a triangle need not be computed, whatever the mask is.
void use_triangles(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (node.type != "hone.Attention" || !node.has_input(3)) continue;
    const Value& mask = graph.value(node.inputs[3]);
    const Shape &query = graph.value(node.inputs[0]).shape,
                &key = graph.value(node.inputs[1]).shape;
    if (!mask.constant) continue;
    const auto triangle = triangle_of(*mask.constant, query[query.size() - 2], key.back());
    if (!triangle) continue;
    node.attributes.set("causal_offset", triangle->offset);
    ++graph.rules[triangle->only ? "triangle_instead_of_mask" : "triangle_beside_mask"];
    if (triangle->only) node.inputs.pop_back();
  }
}

}  // namespace

Status fuse_attention(Graph& graph) {
  static constexpr Rule kRules[] = {{"attention", attention}};
  const size_t nodes = graph.nodes.size();
  HONE_RETURN_IF_ERROR(rewrite(graph, kRules));
  if (graph.nodes.size() == nodes) return ok_status();
  // Masks that depend on constants are constants, and layers share them.
  HONE_RETURN_IF_ERROR(fold_constants(graph));
  use_triangles(graph);
  return eliminate_common_subexpressions(graph);
}

}  // namespace hone::graph
