#include <llvm/IR/Intrinsics.h>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emitter.h"
#include "hone/backend/cpu/signs_of_zeros.h"
#include "hone/backend/cpu/vector_math.h"
#include "hone/ir/scalar.h"

namespace hone::backend::cpu {
namespace {

using ir::Expr;
using ir::ExprNode;
using ir::Op;

bool is_unsigned(DType type) {
  return type == DType::kBool || type == DType::kU8 || type == DType::kU16 || type == DType::kU32 ||
         type == DType::kU64;
}

bool is_call(Op op) {
  return op == Op::kExp || op == Op::kLog || op == Op::kTanh || op == Op::kErf ||
         op == Op::kSigmoid || op == Op::kSin || op == Op::kCos || op == Op::kAtan ||
         op == Op::kPow || op == Op::kRem;
}

bool is_load_of_known(const Expr& e) { return e->op == Op::kLoad && !e->buffer->values.empty(); }

}  // namespace

llvm::Type* PhaseEmitter::type_of(DType type) {
  switch (type) {
    case DType::kF32: return builder_.getFloatTy();
    case DType::kF64: return builder_.getDoubleTy();
    case DType::kF16:
    case DType::kBF16: return builder_.getFloatTy();  // rounded when stored
    case DType::kBool: return builder_.getInt1Ty();
    default: return builder_.getIntNTy(static_cast<unsigned>(dtype_bytes(type)) * 8);
  }
}

llvm::Type* PhaseEmitter::memory_type(DType type) {
  switch (type) {
    case DType::kBool: return builder_.getInt8Ty();
    case DType::kF16:
      if (converts_half_) return builder_.getHalfTy();
      return builder_.getInt16Ty();
    case DType::kBF16: return builder_.getInt16Ty();
    default: return type_of(type);
  }
}

llvm::Value* PhaseEmitter::from_memory(llvm::Value* v, DType type) {
  llvm::Type* of = v->getType();
  switch (type) {
    case DType::kBool: return builder_.CreateICmpNE(v, llvm::Constant::getNullValue(of));
    case DType::kF16:
      if (!converts_half_) return float_of_half(v);
      return cast_float(v, of->getWithNewType(builder_.getFloatTy()));
    case DType::kBF16: {
      llvm::Value* wide = builder_.CreateZExt(v, of->getWithNewType(builder_.getInt32Ty()));
      return builder_.CreateBitCast(builder_.CreateShl(wide, 16),
                                    of->getWithNewType(builder_.getFloatTy()));
    }
    default: return v;
  }
}

llvm::Value* PhaseEmitter::to_memory(llvm::Value* v, DType type) {
  llvm::Type* of = v->getType();
  switch (type) {
    case DType::kBool: return builder_.CreateZExt(v, of->getWithNewType(builder_.getInt8Ty()));
    case DType::kF16:
      if (!converts_half_) return half_of_float(v);
      return cast_float(v, of->getWithNewType(builder_.getHalfTy()));
    case DType::kBF16: {
      // To nearest even; a NaN keeps its upper bits and stays one.
      llvm::Type* word = of->getWithNewType(builder_.getInt32Ty());
      llvm::Value* bits = builder_.CreateBitCast(v, word);
      llvm::Value* odd =
          builder_.CreateAnd(builder_.CreateLShr(bits, 16), llvm::ConstantInt::get(word, 1));
      llvm::Value* rounded =
          builder_.CreateAdd(bits, builder_.CreateAdd(odd, llvm::ConstantInt::get(word, 0x7FFF)));
      llvm::Value* quiet = builder_.CreateOr(bits, llvm::ConstantInt::get(word, 0x400000));
      llvm::Value* kept = builder_.CreateSelect(builder_.CreateFCmpUNO(v, v), quiet, rounded);
      return builder_.CreateTrunc(builder_.CreateLShr(kept, 16),
                                  of->getWithNewType(builder_.getInt16Ty()));
    }
    default: return v;
  }
}

llvm::Constant* PhaseEmitter::integer(llvm::Type* type, int64_t v) {
  return llvm::ConstantInt::get(
      type, llvm::APInt(type->getIntegerBitWidth(), static_cast<uint64_t>(v), false, true));
}

llvm::Type* PhaseEmitter::with_lanes(llvm::Type* type) {
  return llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_.width));
}

llvm::Value* PhaseEmitter::splat(llvm::Value* v) {
  if (v->getType()->isVectorTy() || lanes_.width == 1) return v;
  return builder_.CreateVectorSplat(static_cast<unsigned>(lanes_.width), v);
}

void PhaseEmitter::match(llvm::Value*& a, llvm::Value*& b) {
  if (a->getType()->isVectorTy() == b->getType()->isVectorTy()) return;
  a = splat(a);
  b = splat(b);
}

llvm::Value* PhaseEmitter::lane_numbers(llvm::Type* element) {
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < lanes_.width; ++i)
    numbers.push_back(llvm::ConstantInt::get(element, static_cast<uint64_t>(i)));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* PhaseEmitter::compare(const ExprNode& e) {
  const DType type = e.args[0]->type;
  llvm::Value* a = nullptr;
  llvm::Value* b = nullptr;
  if (type == DType::kI64) {
    const IndexForm left = index(e.args[0]);
    const IndexForm right = index(e.args[1]);
    if (failed()) return llvm::PoisonValue::get(builder_.getInt1Ty());
    const IndexForm difference = add(left, right, -1);
    if (!space_.holds_data(difference)) return compare_forms(e.op, difference);
    a = form_value(left);
    b = form_value(right);
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
llvm::Value* PhaseEmitter::select(const ExprNode& e) {
  llvm::Value* test = condition(e.args[0]);
  if (failed()) return llvm::PoisonValue::get(type_of(e.type));
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(test))
    return value(e.args[known->isOne() ? 1 : 2]);
  const Lanes outer = lanes_;
  if (test->getType()->isVectorTy()) {
    lanes_.mask = outer.mask ? builder_.CreateAnd(outer.mask, test) : test;
    llvm::Value* a = count_in_lanes(*e.args[1]);
    if (!a) a = value(e.args[1]);
    llvm::Value* otherwise = builder_.CreateNot(test);
    lanes_.mask = outer.mask ? builder_.CreateAnd(outer.mask, otherwise) : otherwise;
    llvm::Value* b = value(e.args[2]);
    lanes_ = outer;
    const SignsOfZeros exact(builder_, true);
    return builder_.CreateSelect(test, splat(a), splat(b));
  }
  bool branches = false;
  for (const Expr& side : {e.args[1], e.args[2]}) {
    ir::visit(side, [&](const Expr& node) {
      branches |= is_call(node->op) || (!is_float(node->type) && ir::is_division(node->op));
    });
  }
  if (branches) return branch_select(e, test);
  if (llvm::Value* loaded = load_or_constant(e, test)) return loaded;
  lanes_.guard = outer.guard ? builder_.CreateAnd(outer.guard, test) : test;
  llvm::Value* a = value(e.args[1]);
  llvm::Value* otherwise = builder_.CreateNot(test);
  lanes_.guard = outer.guard ? builder_.CreateAnd(outer.guard, otherwise) : otherwise;
  llvm::Value* b = value(e.args[2]);
  lanes_ = outer;
  match(a, b);
  const SignsOfZeros exact(builder_, true);
  return builder_.CreateSelect(test, a, b);
}

// Borders: an element or a constant, by a test that all lanes share. Where it fails the load reads
// memory that holds the constant, and nothing is left to choose.
llvm::Value* PhaseEmitter::load_or_constant(const ExprNode& select, llvm::Value* test) {
  const ExprNode &element = *select.args[1], &constant = *select.args[2];
  if (element.op != Op::kLoad || constant.op != Op::kFloat || element.type != DType::kF32 ||
      lanes_.mask || lanes_.guard || (reduced_ && element.buffer == reduced_->buffer))
    return nullptr;
  const Access from = access(element.buffer, element.args);
  if (failed() || from.buffer->local || !from.buffer->base) return nullptr;
  if (space_.varying(from.form) && (from.form.lane != 1 || !is_strided(from.form))) return nullptr;
  const Lanes outer = lanes_;
  lanes_.guard = test;
  lanes_.otherwise = static_cast<float>(constant.float_value);
  llvm::Value* loaded = load(from);
  lanes_ = outer;
  return loaded;
}

llvm::Value* PhaseEmitter::branch_select(const ExprNode& e, llvm::Value* test) {
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

// ---- values ----

llvm::Value* PhaseEmitter::value(const Expr& e) {
  if (failed()) return llvm::PoisonValue::get(type_of(e->type));
  if (const auto known = hoisted_.find(e.get()); known != hoisted_.end()) return known->second;
  switch (e->op) {
    case Op::kInt: return integer(type_of(e->type), e->int_value);
    case Op::kFloat: return llvm::ConstantFP::get(type_of(e->type), e->float_value);
    case Op::kVar: return form_value(index(e));
    case Op::kLoad: {
      const Access from = access(e->buffer, e->args);
      if (reduced_ && e->buffer == reduced_->buffer && !space_.varying(from.form))
        return reduced_value_;
      if (const Scan* scan = find_scan(from)) return scan->updated ? scan->after : scan->before;
      return load(from);
    }
    case Op::kLt:
    case Op::kLe:
    case Op::kEq:
    case Op::kNe: return compare(*e);
    case Op::kAnd:
    case Op::kOr: {
      llvm::Value* a = value(e->args[0]);
      llvm::Value* b = value(e->args[1]);
      match(a, b);
      return e->op == Op::kAnd ? builder_.CreateAnd(a, b) : builder_.CreateOr(a, b);
    }
    case Op::kNot: return builder_.CreateNot(value(e->args[0]));
    case Op::kSelect: return select(*e);
    case Op::kCast: return convert(value(e->args[0]), e->args[0]->type, e->type);
    case Op::kBits: return reinterpret(value(e->args[0]), e->args[0]->type, e->type);
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
        return form_value(index(e));
      return arithmetic(*e);
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kBitXor:
    case Op::kShl:
    case Op::kShr: return arithmetic(*e);
    default: return unary(*e);
  }
}

llvm::Value* PhaseEmitter::arithmetic(const ExprNode& e) {
  if (e.op == Op::kMul && is_float(e.type) && e.type != DType::kF64) {
    if (llvm::Value* known = activation(e)) return known;
  }
  llvm::Value* a = value(e.args[0]);
  llvm::Value* b = value(e.args[1]);
  if (e.op == Op::kPow && e.args[1]->op == Op::kFloat) {
    const double exponent = e.args[1]->float_value;
    if (exponent == 2 || exponent == 3) {
      llvm::Value* square = builder_.CreateFMul(a, a);
      return exponent == 2 ? square : builder_.CreateFMul(square, a);
    }
  }
  if (e.op == Op::kPow && e.type != DType::kF64 && e.args[0]->op == Op::kFloat &&
      e.args[0]->float_value == 2)
    return exp2_f32(builder_, b, has_avx512(target_));
  if (e.op == Op::kMul && is_float(e.type)) {
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
  if (is_float(e.type) && (e.op == Op::kAdd || e.op == Op::kSub)) {
    // Products with known matrices skip zeros. A zero that the program itself adds decides a sign,
    // so it stays.
    const auto is_nothing = [&](llvm::Value* v, size_t operand) {
      const auto* known = llvm::dyn_cast<llvm::ConstantFP>(v);
      return known && known->isZero() && e.args[operand]->op != Op::kFloat;
    };
    if (is_nothing(b, 1)) return a;
    if (is_nothing(a, 0) && e.op == Op::kAdd) return b;
  }
  match(a, b);
  const bool with_literal = e.args[0]->op == Op::kFloat || e.args[1]->op == Op::kFloat;
  const SignsOfZeros exact(builder_, with_literal);
  return is_float(e.type) ? float_binary(e.op, a, b, e.type) : int_binary(e.op, a, b, e.type);
}

llvm::Value* PhaseEmitter::float_binary(Op op, llvm::Value* a, llvm::Value* b, DType type) {
  switch (op) {
    case Op::kAdd: return builder_.CreateFAdd(a, b);
    case Op::kSub: return builder_.CreateFSub(a, b);
    case Op::kMul: return builder_.CreateFMul(a, b);
    case Op::kDiv: return builder_.CreateFDiv(a, b);
    case Op::kRem: return library_call(type == DType::kF64 ? "fmod" : "fmodf", {a, b});
    case Op::kMin: return builder_.CreateSelect(builder_.CreateFCmpOLT(a, b), a, b);
    case Op::kMax: return builder_.CreateSelect(builder_.CreateFCmpOGT(a, b), a, b);
    case Op::kPow: return library_call(type == DType::kF64 ? "pow" : "powf", {a, b});
    default: break;
  }
  HONE_ASSERT(false, "not a binary operator of floats");
}

llvm::Value* PhaseEmitter::int_binary(Op op, llvm::Value* a, llvm::Value* b, DType type) {
  const bool no_sign = is_unsigned(type);
  switch (op) {
    case Op::kAdd: return builder_.CreateAdd(a, b);
    case Op::kSub: return builder_.CreateSub(a, b);
    case Op::kMul: return builder_.CreateMul(a, b);
    case Op::kMin:
      return builder_.CreateBinaryIntrinsic(no_sign ? llvm::Intrinsic::umin : llvm::Intrinsic::smin,
                                            a, b);
    case Op::kMax:
      return builder_.CreateBinaryIntrinsic(no_sign ? llvm::Intrinsic::umax : llvm::Intrinsic::smax,
                                            a, b);
    case Op::kBitAnd: return builder_.CreateAnd(a, b);
    case Op::kBitOr: return builder_.CreateOr(a, b);
    case Op::kBitXor: return builder_.CreateXor(a, b);
    case Op::kShl:
    case Op::kShr: return shift(op, a, b, no_sign);
    default: break;
  }
  llvm::Value* zero = llvm::Constant::getNullValue(b->getType());
  llvm::Value* one = llvm::ConstantInt::get(b->getType(), 1);
  if (lanes_.width > 1 && b->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(b)) {
    // Lanes that don't run must not trap.
    b = builder_.CreateSelect(builder_.CreateICmpEQ(b, zero), one, b);
  }
  const bool remainder = op == Op::kFloorMod || op == Op::kRem;
  if (no_sign) return remainder ? builder_.CreateURem(a, b) : builder_.CreateUDiv(a, b);
  llvm::Value* rest = nullptr;
  if (!llvm::isa<llvm::Constant>(b)) {
    // min / -1 traps; the language wraps.
    llvm::Value* minus = llvm::Constant::getAllOnesValue(b->getType());
    llvm::Value* turned = builder_.CreateICmpEQ(b, minus);
    llvm::Value* safe_b = builder_.CreateSelect(turned, one, b);
    if (remainder) {
      b = safe_b;
    } else {
      a = builder_.CreateSelect(turned, builder_.CreateNeg(a), a);
      b = safe_b;
    }
  }
  if (op == Op::kDiv) return builder_.CreateSDiv(a, b);
  rest = builder_.CreateSRem(a, b);
  if (op == Op::kRem) return rest;
  llvm::Value* off = builder_.CreateAnd(builder_.CreateICmpNE(rest, zero),
                                        builder_.CreateICmpSLT(builder_.CreateXor(a, b), zero));
  if (op == Op::kFloorMod) return builder_.CreateSelect(off, builder_.CreateAdd(rest, b), rest);
  return builder_.CreateSub(builder_.CreateSDiv(a, b), builder_.CreateZExt(off, b->getType()));
}

// Shifts by the width or more are poison in LLVM and 0 in the language (-1 for a negative kShr).
llvm::Value* PhaseEmitter::shift(Op op, llvm::Value* a, llvm::Value* by, bool no_sign) {
  const unsigned bits = a->getType()->getScalarSizeInBits();
  llvm::Value* last = llvm::ConstantInt::get(a->getType(), bits - 1);
  llvm::Value* fits = builder_.CreateICmpULE(by, last);
  by = builder_.CreateSelect(fits, by, last);
  if (op == Op::kShr && !no_sign) return builder_.CreateAShr(a, by);
  llvm::Value* moved = op == Op::kShl ? builder_.CreateShl(a, by) : builder_.CreateLShr(a, by);
  return builder_.CreateSelect(fits, moved, llvm::Constant::getNullValue(a->getType()));
}

llvm::Value* PhaseEmitter::unary(const ExprNode& e) {
  if (e.type == DType::kI64 && e.op == Op::kNeg) return form_value(scaled(index(e.args[0]), -1));
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
  return function(e.op, x, e.type);
}

llvm::Value* PhaseEmitter::function(Op op, llvm::Value* x, DType type) {
  switch (op) {
    case Op::kNeg: {
      const SignsOfZeros exact(builder_, true);  // -(a - b) is not b - a
      return builder_.CreateFNeg(x);
    }
    case Op::kAbs: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    case Op::kSqrt: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case Op::kFloor: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    case Op::kCeil: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    case Op::kRound: return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
    default: break;
  }
  if (type != DType::kF64) {
    return math_f32(builder_, op, x, has_avx512(target_));
  }
  switch (op) {
    case Op::kExp: return library_call("exp", {x});
    case Op::kLog: return library_call("log", {x});
    case Op::kTanh: return library_call("tanh", {x});
    case Op::kErf: return library_call("erf", {x});
    case Op::kSin: return library_call("sin", {x});
    case Op::kCos: return library_call("cos", {x});
    case Op::kAtan: return library_call("atan", {x});
    case Op::kSigmoid: {
      llvm::Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
      return builder_.CreateFDiv(
          one, builder_.CreateFAdd(one, library_call("exp", {builder_.CreateFNeg(x)})));
    }
    default: break;
  }
  HONE_ASSERT(false, "not a function of floats");
}

// One call per lane: for what has no vector form.
llvm::Value* PhaseEmitter::library_call(const char* name, llvm::ArrayRef<llvm::Value*> args) {
  llvm::Type* type = args[0]->getType();
  llvm::Type* element = type->getScalarType();
  const std::vector<llvm::Type*> parameters(args.size(), element);
  const llvm::FunctionCallee callee =
      module_.getOrInsertFunction(name, llvm::FunctionType::get(element, parameters, false));
  if (!type->isVectorTy()) return builder_.CreateCall(callee, args);
  llvm::Value* out = llvm::Constant::getNullValue(type);
  for (int i = 0; i < lanes_.active; ++i) {
    std::vector<llvm::Value*> one;
    for (llvm::Value* a : args)
      one.push_back(builder_.CreateExtractElement(a, static_cast<uint64_t>(i)));
    out = builder_.CreateInsertElement(out, builder_.CreateCall(callee, one),
                                       static_cast<uint64_t>(i));
  }
  return out;
}

llvm::Value* PhaseEmitter::convert(llvm::Value* v, DType from, DType to) {
  if (from == to) return v;
  llvm::Type* type = type_of(to);
  if (v->getType()->isVectorTy())
    type = llvm::VectorType::get(type, llvm::cast<llvm::VectorType>(v->getType()));
  llvm::Constant* zero = llvm::Constant::getNullValue(v->getType());
  if (is_float(from)) {
    if (to == DType::kBool) return builder_.CreateFCmpUNE(v, zero);
    if (!is_float(to)) {
      return builder_.CreateIntrinsic(
          is_unsigned(to) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat,
          {type, v->getType()}, {v});
    }
    const bool is_half = dtype_bytes(to) == 2;
    if (type != v->getType()) v = is_half ? narrow_to_odd(v) : cast_float(v, type);
    return is_half ? from_memory(to_memory(v, to), to) : v;
  }
  if (dtype_bytes(to) == 2 && is_float(to) && from != DType::kBool && dtype_bytes(from) > 1)
    return convert(convert(v, from, DType::kF64), DType::kF64, to);
  if (is_float(to))
    return is_unsigned(from) ? builder_.CreateUIToFP(v, type) : builder_.CreateSIToFP(v, type);
  if (to == DType::kBool) return builder_.CreateICmpNE(v, zero);
  return is_unsigned(from) ? builder_.CreateZExtOrTrunc(v, type)
                           : builder_.CreateSExtOrTrunc(v, type);
}

llvm::Value* PhaseEmitter::reinterpret(llvm::Value* v, DType from, DType to) {
  llvm::Value* stored = to_memory(v, from);
  return from_memory(
      builder_.CreateBitCast(stored, stored->getType()->getWithNewType(memory_type(to))), to);
}

}  // namespace hone::backend::cpu
