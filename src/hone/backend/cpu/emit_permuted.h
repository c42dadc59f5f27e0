// backend/cpu/emit_permuted.h - emits loads whose lanes are at places of one row or one vector, as
// permutations of registers.
#pragma once

#include "hone/backend/cpu/emit_memory.h"

namespace hone::backend::cpu {

class PermutedLoads : EmitterPart {
 public:
  PermutedLoads(EmitContext& context, Indices& indices, Memory& memory)
      : EmitterPart(context), indices_(indices), memory_(memory) {}

  // Returns null if the elements lie neither in a row that fits into a few registers nor in one
  // vector.
  llvm::Value* load(const Access& access);

 private:
  llvm::Value* of_row(const Access& access);
  llvm::Value* of_vector(const Access& access);

  Indices& indices_;
  Memory& memory_;
};

}  // namespace hone::backend::cpu
