#include "hone/backend/cpu/operators.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>
#include <numbers>
#include <vector>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/signs_of_zeros.h"
#include "hone/backend/cpu/vector_math.h"
#include "hone/ir/gelu.h"

namespace hone::backend::cpu {
using ir::Op;

bool is_unsigned(DType type) {
  return type == DType::kBool || type == DType::kU8 || type == DType::kU16 || type == DType::kU32 ||
         type == DType::kU64;
}

llvm::Value* Operators::binary(Op op, llvm::Value* a, llvm::Value* b, DType type) {
  return is_float(type) ? float_binary(op, a, b, type) : int_binary(op, a, b, type);
}

llvm::Value* Operators::negative(llvm::Value* x) {
  const SignsOfZeros exact(builder_, true);  // -(a - b) is not b - a
  return builder_.CreateFNeg(x);
}

llvm::Value* Operators::float_binary(Op op, llvm::Value* a, llvm::Value* b, DType type) {
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

llvm::Value* Operators::int_binary(Op op, llvm::Value* a, llvm::Value* b, DType type) {
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
    default: return divide(op, a, b, no_sign);
  }
}

// Divides without traps: of lanes that don't run by 0, and of the least number by -1, which wraps.
llvm::Value* Operators::divide(Op op, llvm::Value* a, llvm::Value* b, bool no_sign) {
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
llvm::Value* Operators::shift(Op op, llvm::Value* a, llvm::Value* by, bool no_sign) {
  const unsigned bits = a->getType()->getScalarSizeInBits();
  llvm::Value* last = llvm::ConstantInt::get(a->getType(), bits - 1);
  llvm::Value* fits = builder_.CreateICmpULE(by, last);
  by = builder_.CreateSelect(fits, by, last);
  if (op == Op::kShr && !no_sign) return builder_.CreateAShr(a, by);
  llvm::Value* moved = op == Op::kShl ? builder_.CreateShl(a, by) : builder_.CreateLShr(a, by);
  return builder_.CreateSelect(fits, moved, llvm::Constant::getNullValue(a->getType()));
}

llvm::Value* Operators::function(Op op, llvm::Value* x, DType type) {
  switch (op) {
    case Op::kNeg: return negative(x);
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

llvm::Value* Operators::gelu(llvm::Value* x, bool by_tanh, DType type) {
  if (type != DType::kF64) return gelu_f32(builder_, x, by_tanh, has_avx512(target_));
  const auto number = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  if (!by_tanh) {
    llvm::Value* u = builder_.CreateFMul(x, number(-std::numbers::sqrt2 / 2));
    return builder_.CreateFMul(builder_.CreateFMul(x, number(0.5)), library_call("erfc", {u}));
  }
  llvm::Value* cube = builder_.CreateFMul(builder_.CreateFMul(x, x), x);
  llvm::Value* u = builder_.CreateFAdd(x, builder_.CreateFMul(cube, number(ir::kGeluCube)));
  llvm::Value* power = library_call("exp", {builder_.CreateFMul(u, number(-ir::kGeluScale))});
  return builder_.CreateFDiv(x, builder_.CreateFAdd(power, number(1)));
}

// One call per lane: for what has no vector form.
llvm::Value* Operators::library_call(const char* name, llvm::ArrayRef<llvm::Value*> args) {
  llvm::Type* type = args[0]->getType();
  llvm::Type* element = type->getScalarType();
  const std::vector<llvm::Type*> parameters(args.size(), element);
  const llvm::FunctionCallee callee = context_.module.getOrInsertFunction(
      name, llvm::FunctionType::get(element, parameters, false));
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

llvm::Value* Operators::identity(Op op, DType type) {
  llvm::Type* of = type_of(type);
  if (is_float(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double v = op == Op::kAdd   ? 0.0
                     : op == Op::kMul ? 1.0
                     : op == Op::kMin ? infinity
                                      : -infinity;
    return llvm::ConstantFP::get(of, v);
  }
  const unsigned bits = of->getIntegerBitWidth();
  const bool no_sign = type != DType::kBool && is_unsigned(type);
  if (op == Op::kMin) {
    return llvm::ConstantInt::get(
        of, no_sign ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits));
  }
  if (op == Op::kMax) {
    return llvm::ConstantInt::get(
        of, no_sign ? llvm::APInt::getMinValue(bits) : llvm::APInt::getSignedMinValue(bits));
  }
  return llvm::ConstantInt::get(of, op == Op::kMul ? 1 : 0);
}

llvm::Value* Operators::nan_or_extreme(Op op, llvm::Value* a, llvm::Value* b) {
  llvm::Value* extreme = float_binary(op, a, b, DType::kF32);  // NaN if b is
  return builder_.CreateSelect(builder_.CreateFCmpUNO(a, a), a, extreme);
}

llvm::Value* Operators::combined(const Combining& by, llvm::Value* a, llvm::Value* b, DType type) {
  return by.keeps_nan ? nan_or_extreme(by.op, a, b) : binary(by.op, a, b, type);
}

llvm::Value* Operators::reduce_lanes(llvm::Value* vector, const Combining& by, DType type) {
  auto width =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  for (; width > 1; width /= 2) {
    llvm::Value* a = part_of(vector, 0, width / 2);
    llvm::Value* b = part_of(vector, width / 2, width / 2);
    vector = combined(by, a, b, type);
  }
  return builder_.CreateExtractElement(vector, uint64_t{0});
}

}  // namespace hone::backend::cpu
