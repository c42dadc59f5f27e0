// backend/cpu/signs_of_zeros.h - decides where LLVM may treat -0 and 0 as equal.
//
// It may do so in sums of products, whose first term then needs no addition to zero. It may not do
// so in what a model computes element by element, by which it may divide.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace hone::backend::cpu {

// During the life of this object, instructions are built that keep the signs of zeros, if they
// matter.
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

}  // namespace hone::backend::cpu
