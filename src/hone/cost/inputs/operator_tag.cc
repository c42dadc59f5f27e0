#include "hone/cost/inputs/operator_tag.h"

#include <algorithm>

namespace hone::cost {
namespace {

bool multiplies(const ir::Expr& e) {
  if (e->op == ir::Op::kMul) return true;
  return e->op != ir::Op::kLoad && std::any_of(e->args.begin(), e->args.end(), multiplies);
}

// The operation that makes the value, below conversions and choices between it and a constant.
ir::Op root_of(const ir::Expr& e) {
  if (e->op == ir::Op::kCast) return root_of(e->args[0]);
  if (e->op == ir::Op::kSelect) return root_of(e->args[1]);
  return e->op;
}

// The name that the operator gave its stage: what steps append follows a dot.
std::string_view operator_of(const compute::Stage& stage) {
  const std::string_view name = stage.op.empty() ? std::string_view(stage.name) : stage.op;
  return name.substr(0, name.find('.'));
}

}  // namespace

const std::array<std::string_view, kNumTags>& tag_names() {
  static constexpr std::array<std::string_view, kNumTags> kNames = {
      "max",       "min",   "add",     "conv",    "winograd",
      "depthwise", "dense", "softmax", "compute", "reduce"};
  return kNames;
}

OperatorTag tag_of(const compute::Stage& stage, bool winograd) {
  if (winograd) return OperatorTag::kWinograd;
  const std::string_view op = operator_of(stage);
  if (op.find("softmax") != op.npos || op.find("attention") != op.npos)
    return OperatorTag::kSoftmax;
  if (stage.outputs.empty() || !stage.outputs[0].value) return OperatorTag::kCompute;
  if (stage.reduce.empty()) {
    switch (root_of(stage.outputs[0].value)) {
      case ir::Op::kMax: return OperatorTag::kMax;
      case ir::Op::kMin: return OperatorTag::kMin;
      case ir::Op::kAdd:
      case ir::Op::kSub: return OperatorTag::kAdd;
      default: return OperatorTag::kCompute;
    }
  }
  if (stage.outputs.size() > 1) return OperatorTag::kReduce;
  const ir::Expr& value = stage.outputs[0].value;
  if (root_of(value) == ir::Op::kMax) return OperatorTag::kMax;
  if (root_of(value) == ir::Op::kMin) return OperatorTag::kMin;
  if (!multiplies(value)) return OperatorTag::kReduce;
  if (op.starts_with("depthwise")) return OperatorTag::kDepthwise;
  return op.starts_with("conv") ? OperatorTag::kConv : OperatorTag::kDense;
}

}  // namespace hone::cost
