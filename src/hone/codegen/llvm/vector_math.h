// codegen/llvm/vector_math.h - functions of float32 as inline polynomials, scalar or vector alike.
//
// Largest error against the exact value, in units of the last place, over all floats (checked by
// vector_math_test): exp 2, exp2 3, log 2, tanh 8, erf 8 (with AVX-512 3), sigmoid 4 + 1.25 |x|,
// sin and cos 2 for |x| <= 1e6, atan 3. Infinities, NaN, zeros and denormal results are right;
// sigmoid's denormal results may be zero.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "hone/ir/expr.h"

namespace hone::codegen {

// kExp, kLog, kTanh, kErf, kSigmoid, kSin, kCos or kAtan of float or <n x float>. `has_avx512`: its
// instructions may be used.
[[nodiscard]] llvm::Value* math_f32(llvm::IRBuilder<>& builder, ir::Op op, llvm::Value* x,
                                    bool has_avx512);
// 2^x, in 8 instructions of AVX-512 instead of the 13 of e^x.
[[nodiscard]] llvm::Value* exp2_f32(llvm::IRBuilder<>& builder, llvm::Value* x, bool has_avx512);
// e^x in 9 of them, where 1.25 |x| units more of error do not matter: x is itself a rounded result.
[[nodiscard]] llvm::Value* loose_exp_f32(llvm::IRBuilder<>& builder, llvm::Value* x,
                                         bool has_avx512);
// y sigmoid(scale x), in as many instructions as the sigmoid alone.
[[nodiscard]] llvm::Value* logistic_f32(llvm::IRBuilder<>& builder, llvm::Value* y, llvm::Value* x,
                                        double scale, bool has_avx512);
// erf(scale x), scale > 0.
[[nodiscard]] llvm::Value* erf_f32(llvm::IRBuilder<>& builder, llvm::Value* x, double scale,
                                   bool has_avx512);

}  // namespace hone::codegen
