// backend/cpu/vector_math.h - functions of float32 as inline polynomials for scalars and vectors.
//
// The largest error in units of the last place, over all floats (checked by vector_math_test), is:
// exp 2, exp2 3, log 2, tanh 4, erf 4, sigmoid 4, GELU 4, sin and cos 2, atan 3. Infinities, NaN,
// zeros and denormal results are correct, except that denormal results of sigmoid and GELU may be
// zero.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "hone/ir/expr.h"

namespace hone::backend::cpu {

// Emits kExp, kLog, kTanh, kErf, kSigmoid, kSin, kCos or kAtan of float or <n x float>. With
// `has_avx512`, AVX-512 instructions may be used.
[[nodiscard]] llvm::Value* math_f32(llvm::IRBuilder<>& builder, ir::Op op, llvm::Value* x,
                                    bool has_avx512);
// Emits 2^x, which takes 8 instructions of AVX-512 instead of the 13 of e^x.
[[nodiscard]] llvm::Value* exp2_f32(llvm::IRBuilder<>& builder, llvm::Value* x, bool has_avx512);
// Emits e^x in 9 instructions of AVX-512, with an additional error of 1.25 |x| units, which does
// not matter where x is itself a rounded result.
[[nodiscard]] llvm::Value* loose_exp_f32(llvm::IRBuilder<>& builder, llvm::Value* x,
                                         bool has_avx512);
// Emits y sigmoid(scale x), which takes as many instructions as the sigmoid alone; scale must be >
// 0.
[[nodiscard]] llvm::Value* logistic_f32(llvm::IRBuilder<>& builder, llvm::Value* y, llvm::Value* x,
                                        double scale, bool has_avx512);
// Emits GELU (ir/gelu.h).
[[nodiscard]] llvm::Value* gelu_f32(llvm::IRBuilder<>& builder, llvm::Value* x, bool by_tanh,
                                    bool has_avx512);
// Emits erf(scale x); scale must be > 0.
[[nodiscard]] llvm::Value* erf_f32(llvm::IRBuilder<>& builder, llvm::Value* x, double scale,
                                   bool has_avx512);

}  // namespace hone::backend::cpu
