#include "hone/backend/cpu/emit_value.h"

#include <llvm/IR/Intrinsics.h>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emit_scan.h"
#include "hone/backend/cpu/signs_of_zeros.h"
#include "hone/backend/cpu/vector_math.h"
#include "hone/ir/gelu.h"
#include "hone/ir/scalar.h"
#include "hone/ir/scan_loop.h"

namespace hone::backend::cpu {
namespace {

using ir::Expr;
using ir::ExprNode;
using ir::Op;

bool is_call(Op op) {
  return op == Op::kExp || op == Op::kLog || op == Op::kTanh || op == Op::kErf ||
         op == Op::kSigmoid || op == Op::kSin || op == Op::kCos || op == Op::kAtan ||
         op == Op::kPow || op == Op::kRem;
}

bool is_load_of_known(const Expr& e) { return e->op == Op::kLoad && !e->buffer->values.empty(); }

}  // namespace

llvm::Value* Values::value(const Expr& e) {
  if (failed()) return llvm::PoisonValue::get(type_of(e->type));
  if (const auto known = hoisted_.find(e.get()); known != hoisted_.end()) return known->second;
  switch (e->op) {
    case Op::kInt: return integer(type_of(e->type), e->int_value);
    case Op::kFloat: return llvm::ConstantFP::get(type_of(e->type), e->float_value);
    case Op::kVar: return indices_.form_value(indices_.index(e));
    case Op::kLoad: return load(*e);
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe: return compare(*e);
    case Op::kAnd:
    case Op::kOr: return logical(*e);
    case Op::kNot: return builder_.CreateNot(value(e->args[0]));
    case Op::kSelect: return ir::is_nan_or_extreme(e) ? nan_or_extreme(*e) : select(*e);
    case Op::kCast: return conversions_.convert(value(e->args[0]), e->args[0]->type, e->type);
    case Op::kBits: return conversions_.reinterpret(value(e->args[0]), e->args[0]->type, e->type);
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kFloorDiv:
    case Op::kFloorMod:
    case Op::kRem:
    case Op::kMin:
    case Op::kMax:
    case Op::kPow:
      if (e->type == DType::kI64 && e->op != Op::kDiv && e->op != Op::kRem)
        return indices_.form_value(indices_.index(e));
      return arithmetic(*e);
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kBitXor:
    case Op::kShl:
    case Op::kShr: return arithmetic(*e);
    default: return unary(*e);
  }
}

bool Values::is_fixed(const ir::Expr& e) const {
  if (e->op != Op::kLoad || e->type != DType::kI64 || !memory_.is_read_only(e->buffer.get()))
    return false;
  for (size_t d = 0; d < e->args.size(); ++d) {
    const ir::Expr& index = e->args[d];
    const bool is_inside =
        ir::is_const_int(index) && index->int_value >= 0 && index->int_value < e->buffer->shape[d];
    if (!is_inside) return false;
  }
  return true;
}

llvm::Value* Values::load_fixed(const ir::ExprNode& load) {
  return memory_.load(memory_.access(load.buffer, load.args));
}

llvm::Value* Values::load(const ExprNode& e) {
  const Access from = memory_.access(e.buffer, e.args);
  if (updated_ && e.buffer == updated_->buffer && !space_.varying(from.form)) return element_;
  llvm::Value* carried = scans_.value_of(from);
  return carried ? carried : memory_.load(from);
}

llvm::Value* Values::logical(const ExprNode& e) {
  llvm::Value* a = value(e.args[0]);
  llvm::Value* b = value(e.args[1]);
  match(a, b);
  return e.op == Op::kAnd ? builder_.CreateAnd(a, b) : builder_.CreateOr(a, b);
}

llvm::Value* Values::updated(const ir::StmtNode& store, llvm::Value* element) {
  updated_ = &store;
  element_ = element;
  llvm::Value* result = value(store.value);
  updated_ = nullptr;
  return result;
}

void Values::hoist(const std::vector<Expr>& expressions) {
  for (const Expr& e : expressions) hoisted_[e.get()] = value(e);
}

llvm::Value* Values::compare(const ExprNode& e) {
  const DType type = e.args[0]->type;
  llvm::Value* a = nullptr;
  llvm::Value* b = nullptr;
  if (type == DType::kI64) {
    const IndexForm left = indices_.index(e.args[0]);
    const IndexForm right = indices_.index(e.args[1]);
    if (failed()) return llvm::PoisonValue::get(builder_.getInt1Ty());
    const IndexForm difference = add(left, right, -1);
    if (!space_.holds_data(difference)) return indices_.compare_forms(e.op, difference);
    a = indices_.form_value(left);
    b = indices_.form_value(right);
  } else {
    a = value(e.args[0]);
    b = value(e.args[1]);
  }
  match(a, b);
  if (is_float(type)) {
    switch (e.op) {
      case Op::kLt: return builder_.CreateFCmpOLT(a, b);
      case Op::kLe: return builder_.CreateFCmpOLE(a, b);
      case Op::kEq: return builder_.CreateFCmpOEQ(a, b);
      default: return builder_.CreateFCmpUNE(a, b);
    }
  }
  const bool no_sign = is_unsigned(type);
  switch (e.op) {
    case Op::kLt: return no_sign ? builder_.CreateICmpULT(a, b) : builder_.CreateICmpSLT(a, b);
    case Op::kLe: return no_sign ? builder_.CreateICmpULE(a, b) : builder_.CreateICmpSLE(a, b);
    case Op::kEq: return builder_.CreateICmpEQ(a, b);
    default: return builder_.CreateICmpNE(a, b);
  }
}

// Evaluates only what is chosen: loads of the other side go to safe memory or are masked off.
llvm::Value* Values::select(const ExprNode& e) {
  llvm::Value* test = value(e.args[0]);
  if (failed()) return llvm::PoisonValue::get(type_of(e.type));
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(test))
    return value(e.args[known->isOne() ? 1 : 2]);
  if (test->getType()->isVectorTy()) return select_lanes(e, test);
  bool branches = false;
  for (const Expr& side : {e.args[1], e.args[2]}) {
    ir::visit(side, [&](const Expr& node) {
      branches |= is_call(node->op) || (!is_float(node->type) && ir::is_division(node->op));
    });
  }
  if (branches) return branch_select(e, test);
  if (llvm::Value* loaded = load_or_constant(e, test)) return loaded;
  const Lanes outer = lanes_;
  lanes_.guard = both(outer.guard, test);
  llvm::Value* a = value(e.args[1]);
  llvm::Value* otherwise = builder_.CreateNot(test);
  lanes_.guard = both(outer.guard, otherwise);
  llvm::Value* b = value(e.args[2]);
  lanes_ = outer;
  match(a, b);
  const SignsOfZeros exact(builder_, true);
  return builder_.CreateSelect(test, a, b);
}

// Both operands are read once, also where one is NaN.
llvm::Value* Values::nan_or_extreme(const ExprNode& e) {
  const ExprNode& extreme = *e.args[2];
  llvm::Value* x = value(extreme.args[0]);
  llvm::Value* y = value(extreme.args[1]);
  match(x, y);
  const SignsOfZeros exact(builder_, true);
  return operators_.nan_or_extreme(extreme.op, x, y);
}

llvm::Value* Values::select_lanes(const ExprNode& e, llvm::Value* test) {
  const Lanes outer = lanes_;
  lanes_.mask = both(outer.mask, test);
  llvm::Value* a = indices_.count_in_lanes(*e.args[1]);
  if (!a) a = value(e.args[1]);
  llvm::Value* otherwise = builder_.CreateNot(test);
  lanes_.mask = both(outer.mask, otherwise);
  llvm::Value* b = value(e.args[2]);
  lanes_ = outer;
  const SignsOfZeros exact(builder_, true);
  return builder_.CreateSelect(test, splat(a), splat(b));
}

// Borders: an element or a constant, by a test that all lanes share. Where it fails the load reads
// memory that holds the constant, and nothing is left to choose.
llvm::Value* Values::load_or_constant(const ExprNode& select, llvm::Value* test) {
  const ExprNode &element = *select.args[1], &constant = *select.args[2];
  if (element.op != Op::kLoad || constant.op != Op::kFloat || element.type != DType::kF32 ||
      lanes_.mask || lanes_.guard || (updated_ && element.buffer == updated_->buffer))
    return nullptr;
  const Access from = memory_.access(element.buffer, element.args);
  if (failed() || from.buffer->local || !from.buffer->base) return nullptr;
  if (space_.varying(from.form) && (from.form.lane != 1 || !space_.is_strided(from.form)))
    return nullptr;
  const Lanes outer = lanes_;
  lanes_.guard = test;
  lanes_.otherwise = static_cast<float>(constant.float_value);
  llvm::Value* loaded = memory_.load(from);
  lanes_ = outer;
  return loaded;
}

llvm::Value* Values::branch_select(const ExprNode& e, llvm::Value* test) {
  llvm::BasicBlock* blocks[2] = {new_block("chosen"), new_block("otherwise")};
  llvm::BasicBlock* after = new_block("after");
  builder_.CreateCondBr(test, blocks[0], blocks[1]);
  llvm::Value* values[2];
  for (int i = 0; i < 2; ++i) {
    builder_.SetInsertPoint(blocks[i]);
    values[i] = splat(value(e.args[static_cast<size_t>(i) + 1]));
    blocks[i] = builder_.GetInsertBlock();
    builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
  llvm::PHINode* merged = builder_.CreatePHI(values[0]->getType(), 2);
  for (int i = 0; i < 2; ++i) merged->addIncoming(values[i], blocks[i]);
  return merged;
}

llvm::Value* Values::arithmetic(const ExprNode& e) {
  if (e.op == Op::kMul && is_float(e.type)) {
    if (const std::optional<ir::Gelu> found = ir::find_gelu(e))
      return operators_.gelu(value(found->x), found->by_tanh, e.type);
    llvm::Value* known = e.type == DType::kF64 ? nullptr : activation(e);
    if (known) return known;
  }
  llvm::Value* a = value(e.args[0]);
  llvm::Value* b = value(e.args[1]);
  if (e.op == Op::kPow) {
    if (llvm::Value* found = power(e, a, b)) return found;
  }
  if (is_float(e.type)) {
    if (llvm::Value* found = with_known(e, a, b)) return found;
  }
  match(a, b);
  const bool with_literal = e.args[0]->op == Op::kFloat || e.args[1]->op == Op::kFloat;
  const SignsOfZeros exact(builder_, with_literal);
  return operators_.binary(e.op, a, b, e.type);
}

// Powers that need no function, or half of one; null for any others.
llvm::Value* Values::power(const ExprNode& e, llvm::Value* a, llvm::Value* b) {
  if (e.args[1]->op == Op::kFloat) {
    const double exponent = e.args[1]->float_value;
    if (exponent == 2 || exponent == 3) {
      llvm::Value* square = builder_.CreateFMul(a, a);
      return exponent == 2 ? square : builder_.CreateFMul(square, a);
    }
  }
  if (e.type != DType::kF64 && e.args[0]->op == Op::kFloat && e.args[0]->float_value == 2)
    return exp2_f32(builder_, b, has_avx512(target_));
  return nullptr;
}

// Products and sums with known numbers that leave the other operand; null for any others.
llvm::Value* Values::with_known(const ExprNode& e, llvm::Value* a, llvm::Value* b) {
  if (e.op == Op::kMul) {
    // Known small matrices are mostly 0, 1 and -1.
    for (int i = 0; i < 2; ++i) {
      const auto* known = llvm::dyn_cast<llvm::ConstantFP>(i == 0 ? a : b);
      llvm::Value* other = i == 0 ? b : a;
      if (!known || !is_load_of_known(e.args[static_cast<size_t>(i)])) continue;
      if (known->isZero()) return llvm::ConstantFP::get(type_of(e.type), 0.0);
      if (known->isExactlyValue(1.0)) return other;
      if (known->isExactlyValue(-1.0)) return builder_.CreateFNeg(other);
    }
  }
  if (e.op == Op::kAdd || e.op == Op::kSub) {
    // Products with known matrices skip zeros. A zero that the program itself adds decides a sign,
    // so it stays.
    const auto is_nothing = [&](llvm::Value* v, size_t operand) {
      const auto* known = llvm::dyn_cast<llvm::ConstantFP>(v);
      return known && known->isZero() && e.args[operand]->op != Op::kFloat;
    };
    if (is_nothing(b, 1)) return a;
    if (is_nothing(a, 0) && e.op == Op::kAdd) return b;
  }
  return nullptr;
}

// Activations that are products, in fewer instructions than their factors: SiLU, x sigmoid(c x),
// and others like GELU, y (1 + erf(u)) or y / 2 (1 + tanh(u)) = y sigmoid(2 u). Null for any
// others.
llvm::Value* Values::activation(const ExprNode& product) {
  const bool avx512 = has_avx512(target_);
  for (size_t i = 0; i < 2; ++i) {
    const Expr &factor = product.args[i], &other = product.args[1 - i];
    if (factor->op == Op::kSigmoid) {
      const ir::Scaled argument = ir::scaled_factor(factor->args[0]);
      if (equal(argument.x, other)) {
        llvm::Value* x = value(other);
        return logistic_f32(builder_, x, x, argument.by, avx512);
      }
    }
    const Expr step = ir::step_above_one(factor);
    if (!step || hoisted_.contains(step.get()) || hoisted_.contains(factor.get())) continue;
    const ir::Scaled argument = ir::scaled_factor(step->args[0]);
    llvm::Value* x = value(argument.x);
    if (step->op == Op::kErf) {
      llvm::Value* y = value(other);
      llvm::Value* erf = erf_f32(builder_, x, argument.by, avx512);
      match(y, erf);
      return builder_.CreateFAdd(builder_.CreateFMul(y, erf), y);
    }
    const ir::Scaled half = ir::scaled_factor(other);
    llvm::Value* y = value(half.x);
    match(y, x);
    if (half.by != 0.5)
      y = builder_.CreateFMul(y, llvm::ConstantFP::get(y->getType(), 2 * half.by));
    return logistic_f32(builder_, y, x, 2 * argument.by, avx512);
  }
  return nullptr;
}

llvm::Value* Values::unary(const ExprNode& e) {
  if (e.type == DType::kI64 && e.op == Op::kNeg)
    return indices_.form_value(scaled(indices_.index(e.args[0]), -1));
  llvm::Value* x = value(e.args[0]);
  if (!is_float(e.type)) {
    llvm::Value* negative = builder_.CreateNeg(x);
    if (e.op == Op::kNeg) return negative;
    HONE_ASSERT(e.op == Op::kAbs, "not a function of integers");
    if (is_unsigned(e.type)) return x;
    return builder_.CreateSelect(
        builder_.CreateICmpSLT(x, llvm::Constant::getNullValue(x->getType())), negative, x);
  }
  // Softmax takes e^(x - most), whose argument has been rounded.
  if (e.op == Op::kExp && e.type != DType::kF64 && e.args[0]->op == Op::kSub)
    return loose_exp_f32(builder_, x, has_avx512(target_));
  return operators_.function(e.op, x, e.type);
}

}  // namespace hone::backend::cpu
