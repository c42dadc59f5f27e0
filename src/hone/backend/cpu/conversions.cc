#include "hone/backend/cpu/conversions.h"

#include <llvm/IR/Intrinsics.h>

#include "hone/backend/cpu/operators.h"

// Between the float types. A processor without instructions for half precision (x86-64 before
// F16C) gets the integer arithmetic that they stand for: its compiler would call functions of a
// library that a model is not linked with.

namespace hone::backend::cpu {
namespace {

// Fields of float (8 bits of exponent, 23 of fraction) and half (5 and 10).
constexpr uint32_t kFraction = 23, kShift = 23 - 10;
constexpr uint32_t kBias = 127 - 15;  // what a float's exponent is larger by
constexpr uint32_t kInfinity = 0x7F800000, kQuiet = 0x00400000;

}  // namespace

llvm::Type* Conversions::memory_type(DType type) {
  switch (type) {
    case DType::kBool: return builder_.getInt8Ty();
    case DType::kF16:
      if (context_.converts_half) return builder_.getHalfTy();
      return builder_.getInt16Ty();
    case DType::kBF16: return builder_.getInt16Ty();
    default: return type_of(type);
  }
}

llvm::Value* Conversions::from_memory(llvm::Value* v, DType type) {
  llvm::Type* of = v->getType();
  switch (type) {
    case DType::kBool: return builder_.CreateICmpNE(v, llvm::Constant::getNullValue(of));
    case DType::kF16:
      if (!context_.converts_half) return float_of_half(v);
      return cast_float(v, of->getWithNewType(builder_.getFloatTy()));
    case DType::kBF16: {
      llvm::Value* wide = builder_.CreateZExt(v, of->getWithNewType(builder_.getInt32Ty()));
      return builder_.CreateBitCast(builder_.CreateShl(wide, 16),
                                    of->getWithNewType(builder_.getFloatTy()));
    }
    default: return v;
  }
}

llvm::Value* Conversions::to_memory(llvm::Value* v, DType type) {
  llvm::Type* of = v->getType();
  switch (type) {
    case DType::kBool: return builder_.CreateZExt(v, of->getWithNewType(builder_.getInt8Ty()));
    case DType::kF16:
      if (!context_.converts_half) return half_of_float(v);
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

llvm::Value* Conversions::convert(llvm::Value* v, DType from, DType to) {
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

llvm::Value* Conversions::reinterpret(llvm::Value* v, DType from, DType to) {
  llvm::Value* stored = to_memory(v, from);
  return from_memory(
      builder_.CreateBitCast(stored, stored->getType()->getWithNewType(memory_type(to))), to);
}

// Rounds by itself: two casts that may be contracted would round once.
llvm::Value* Conversions::cast_float(llvm::Value* v, llvm::Type* type) {
  const llvm::IRBuilder<>::FastMathFlagGuard guard(builder_);
  llvm::FastMathFlags flags = builder_.getFastMathFlags();
  flags.setAllowContract(false);
  builder_.setFastMathFlags(flags);
  return builder_.CreateFPCast(v, type);
}

// double to float, so that rounding the float once more gives what rounding the double would: a
// result that is not exact is cut off and gets an odd last bit.
llvm::Value* Conversions::narrow_to_odd(llvm::Value* v) {
  llvm::Type* single = v->getType()->getWithNewType(builder_.getFloatTy());
  llvm::Type* word = v->getType()->getWithNewType(builder_.getInt32Ty());
  llvm::Value* nearest = cast_float(v, single);
  llvm::Value* back = cast_float(nearest, v->getType());
  llvm::Value* beyond =
      builder_.CreateFCmpOGT(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                             builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
  llvm::Value* bits = builder_.CreateBitCast(nearest, word);
  llvm::Value* cut = builder_.CreateSub(bits, builder_.CreateZExt(beyond, word));
  llvm::Value* odd =
      builder_.CreateOr(cut, builder_.CreateZExt(builder_.CreateFCmpONE(back, v), word));
  return builder_.CreateBitCast(odd, single);
}

// The bits of halves as floats, exactly: also where denormal numbers count as zero, as by the
// instructions.
llvm::Value* Conversions::float_of_half(llvm::Value* bits) {
  const llvm::IRBuilder<>::FastMathFlagGuard guard(builder_);
  builder_.clearFastMathFlags();
  llvm::Type* word = bits->getType()->getWithNewType(builder_.getInt32Ty());
  llvm::Type* single = bits->getType()->getWithNewType(builder_.getFloatTy());
  const auto constant = [&](uint32_t v) { return llvm::ConstantInt::get(word, v); };
  llvm::Value* wide = builder_.CreateZExt(bits, word);
  llvm::Value* sign = builder_.CreateShl(builder_.CreateAnd(wide, constant(0x8000)), 16);
  llvm::Value* rest = builder_.CreateShl(builder_.CreateAnd(wide, constant(0x7FFF)), kShift);
  llvm::Value* normal = builder_.CreateAdd(rest, constant(kBias << kFraction));
  // Infinity and NaN, which becomes a quiet one.
  llvm::Value* special = builder_.CreateAdd(rest, constant(2 * kBias << kFraction));
  llvm::Value* quiet = builder_.CreateOr(special, constant(kQuiet));
  special =
      builder_.CreateSelect(builder_.CreateICmpEQ(special, constant(kInfinity)), special, quiet);
  // A denormal half is its fraction times 2^-24: the fraction behind 2^-14, and that taken off.
  const uint32_t least = (kBias + 1) << kFraction;
  llvm::Value* above = builder_.CreateBitCast(builder_.CreateAdd(rest, constant(least)), single);
  llvm::Value* denormal = builder_.CreateBitCast(
      builder_.CreateFSub(above, builder_.CreateBitCast(constant(least), single)), word);
  llvm::Value* exponent = builder_.CreateAnd(wide, constant(0x7C00));
  llvm::Value* found = builder_.CreateSelect(
      builder_.CreateICmpEQ(exponent, constant(0)), denormal,
      builder_.CreateSelect(builder_.CreateICmpEQ(exponent, constant(0x7C00)), special, normal));
  return builder_.CreateBitCast(builder_.CreateOr(found, sign), single);
}

// The bits of floats rounded to halves, to nearest even; a NaN keeps its upper bits and is quiet.
llvm::Value* Conversions::half_of_float(llvm::Value* v) {
  const llvm::IRBuilder<>::FastMathFlagGuard guard(builder_);
  builder_.clearFastMathFlags();
  llvm::Type* word = v->getType()->getWithNewType(builder_.getInt32Ty());
  const auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(word, c); };
  llvm::Value* bits = builder_.CreateBitCast(v, word);
  llvm::Value* sign = builder_.CreateAnd(bits, constant(0x80000000));
  llvm::Value* rest = builder_.CreateXor(bits, sign);
  // Half of the last place is added, less one where the last bit that stays is even.
  llvm::Value* odd = builder_.CreateAnd(builder_.CreateLShr(rest, kShift), constant(1));
  llvm::Value* biased =
      builder_.CreateSub(rest, constant((kBias << kFraction) - ((1U << (kShift - 1)) - 1)));
  llvm::Value* normal = builder_.CreateLShr(builder_.CreateAdd(biased, odd), kShift);
  // Below 2^-14: added to 0.5, whose last place is that of the denormal halves.
  const uint32_t half = (127 - 1) << kFraction;
  llvm::Value* magnitude = builder_.CreateBitCast(rest, v->getType());
  llvm::Value* sum =
      builder_.CreateFAdd(magnitude, builder_.CreateBitCast(constant(half), v->getType()));
  llvm::Value* denormal = builder_.CreateSub(builder_.CreateBitCast(sum, word), constant(half));
  llvm::Value* nan = builder_.CreateOr(
      constant(0x7E00), builder_.CreateAnd(builder_.CreateLShr(rest, kShift), constant(0x3FF)));
  llvm::Value* special = builder_.CreateSelect(builder_.CreateICmpUGT(rest, constant(kInfinity)),
                                               nan, constant(0x7C00));
  llvm::Value* found = builder_.CreateSelect(
      builder_.CreateICmpULT(rest, constant((kBias + 1) << kFraction)), denormal, normal);
  // From 2^16 on; what is less and rounds to it carries into the exponent.
  found = builder_.CreateSelect(builder_.CreateICmpUGE(rest, constant((127 + 16) << kFraction)),
                                special, found);
  found = builder_.CreateOr(found, builder_.CreateLShr(sign, 16));
  return builder_.CreateTrunc(found, v->getType()->getWithNewType(builder_.getInt16Ty()));
}

}  // namespace hone::backend::cpu
