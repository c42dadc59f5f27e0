// Activations that are products, in fewer instructions than their factors: SiLU, x sigmoid(x), and
// GELU, x / 2 (1 + erf(x / sqrt 2)) or x / 2 (1 + tanh(u)) = x sigmoid(2 u).
#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emitter.h"
#include "hone/backend/cpu/vector_math.h"

namespace hone::backend::cpu {
namespace {

using ir::Expr;
using ir::ExprNode;
using ir::Op;

struct Scaled {
  Expr x;
  double by = 1;
};

// e as a product with a positive constant, if it is one.
Scaled scaled_factor(const Expr& e) {
  for (size_t i = 0; e->op == Op::kMul && i < 2; ++i) {
    const Expr& factor = e->args[i];
    if (factor->op == Op::kFloat && factor->float_value > 0)
      return {e->args[1 - i], factor->float_value};
  }
  return {e};
}

// f of 1 + f, an erf or a tanh; null for anything else.
Expr step_above_one(const Expr& sum) {
  for (size_t i = 0; sum->op == Op::kAdd && i < 2; ++i) {
    const Expr &one = sum->args[i], &step = sum->args[1 - i];
    if (one->op == Op::kFloat && one->float_value == 1 &&
        (step->op == Op::kErf || step->op == Op::kTanh))
      return step;
  }
  return nullptr;
}

}  // namespace

llvm::Value* PhaseEmitter::activation(const ExprNode& product) {
  const bool avx512 = has_avx512(target_);
  for (size_t i = 0; i < 2; ++i) {
    const Expr &factor = product.args[i], &other = product.args[1 - i];
    if (factor->op == Op::kSigmoid && equal(factor->args[0], other)) {
      llvm::Value* x = value(other);
      return logistic_f32(builder_, x, x, 1, avx512);
    }
    const Expr step = step_above_one(factor);
    if (!step || hoisted_.contains(step.get()) || hoisted_.contains(factor.get())) continue;
    const Scaled argument = scaled_factor(step->args[0]);
    llvm::Value* x = value(argument.x);
    if (step->op == Op::kErf) {
      llvm::Value* half = value(other);
      llvm::Value* erf = erf_f32(builder_, x, argument.by, avx512);
      match(half, erf);
      return builder_.CreateFAdd(builder_.CreateFMul(half, erf), half);
    }
    const Scaled half = scaled_factor(other);
    llvm::Value* y = value(half.x);
    match(y, x);
    if (half.by != 0.5)
      y = builder_.CreateFMul(y, llvm::ConstantFP::get(y->getType(), 2 * half.by));
    return logistic_f32(builder_, y, x, 2 * argument.by, avx512);
  }
  return nullptr;
}

}  // namespace hone::backend::cpu
