// codegen/llvm/signs_of_zeros.h - where LLVM may take -0 and 0 for the same.
//
// It may in sums of products, of which the first term then needs no addition to a zero; not in what
// a model computes element by element, and may divide by.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace hone::codegen {

// What is built during its life keeps the signs of zeros, if they matter.
class SignsOfZeros {
 public:
  SignsOfZeros(llvm::IRBuilderBase& builder, bool matter) : guard_(builder) {
    if (!matter) return;
    llvm::FastMathFlags flags = builder.getFastMathFlags();
    flags.setNoSignedZeros(false);
    builder.setFastMathFlags(flags);
  }

 private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

}  // namespace hone::codegen
