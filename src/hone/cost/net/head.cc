#include "hone/cost/net/head.h"

#include <optional>

#include "hone/cost/net/builder.h"

namespace hone::cost::net {
namespace {

// Follows the score back to the weights that it is linear in, and applies to what these are
// multiplied with what happens to the products.
class Lifter {
 public:
  explicit Lifter(const Net& net) : net_(net), b_(net) {}

  Result<Net> run() && {
    const std::optional<Value> head = lift(net_.find_output("score")->node);
    if (!head) return invalid("the score of {} is not linear in any layer's weights", net_.family);
    b_.output(std::string(kHeadOutput), *head);
    return b_.finish();
  }

 private:
  [[nodiscard]] const Node& node(int place) const { return net_.nodes[static_cast<size_t>(place)]; }

  // Like the node's value, but along the last axis all that is multiplied with weights, of whose
  // products the node has one. None: it is not linear in weights.
  std::optional<Value> lift(int place) {
    const Node& n = node(place);
    switch (n.op) {
      case Op::kMatmul:
        if (node(n.inputs[1]).op != Op::kParameter) return std::nullopt;
        return Value{n.inputs[0]};
      case Op::kAdd:
      case Op::kSub:
        if (const std::optional<Value> first = lift_operand(n, 0)) return first;
        if (const std::optional<Value> second = lift_operand(n, 1))
          return n.op == Op::kAdd ? *second : b_.mul(*second, b_.scalar(-1));
        return std::nullopt;
      case Op::kMul:
      case Op::kDiv: return lift_scaled(n);
      case Op::kSlice: return lift_slice(n);
      case Op::kReduceSum:
      case Op::kReduceMean: return lift_reduced(n);
      default: return std::nullopt;
    }
  }

  std::optional<Value> lift_operand(const Node& n, size_t which) {
    const int operand = n.inputs[which];
    if (node(operand).dims != n.dims) return std::nullopt;  // broadcast
    return lift(operand);
  }

  // Times or divided by one number for all along the last axis.
  std::optional<Value> lift_scaled(const Node& n) {
    const Value factor{n.inputs[1]};
    const Dims& dims = node(factor.node).dims;
    if (!dims.empty() && dims.back() != 1) return std::nullopt;
    const std::optional<Value> lifted = lift_operand(n, 0);
    if (!lifted) return std::nullopt;
    return n.op == Op::kMul ? b_.mul(*lifted, factor) : b_.div(*lifted, factor);
  }

  std::optional<Value> lift_slice(const Node& n) {
    const auto axis = static_cast<int>(n.integers[0]);
    const std::optional<Value> lifted = lift(n.inputs[0]);
    if (!lifted || axis + 1 == std::ssize(n.dims)) return lifted;
    return b_.slice(*lifted, axis, n.integers[1], n.integers[2]);
  }

  std::optional<Value> lift_reduced(const Node& n) {
    const auto axis = static_cast<int>(n.integers[0]);
    if (axis + 1 == std::ssize(node(n.inputs[0]).dims)) return std::nullopt;
    const std::optional<Value> lifted = lift(n.inputs[0]);
    if (!lifted) return std::nullopt;
    const bool keep = n.integers[1] != 0;
    return n.op == Op::kReduceSum ? b_.reduce_sum(*lifted, axis, keep)
                                  : b_.reduce_mean(*lifted, axis, keep);
  }

  const Net net_;
  NetBuilder b_;
};

}  // namespace

Result<Net> with_head(Net net) { return Lifter(net).run(); }

}  // namespace hone::cost::net
