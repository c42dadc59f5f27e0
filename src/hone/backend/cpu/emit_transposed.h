// backend/cpu/emit_transposed.h - emits square blocks whose store is contiguous across the lanes:
//   unrolled i: vectorized j: x[.., j s + i] = value
// The values of all i and j are transposed in registers and stored along i, instead of lane by
// lane.
#pragma once

#include "hone/backend/cpu/emit_value.h"

namespace hone::backend::cpu {

class Squares : EmitterPart {
 public:
  Squares(EmitContext& context, Conversions& conversions, Indices& indices, Memory& memory,
          Values& values)
      : EmitterPart(context),
        conversions_(conversions),
        indices_(indices),
        memory_(memory),
        values_(values) {}

  // Emits an unrolled loop. Returns false for any other kind of loop.
  bool emit(const ir::StmtNode& s);

 private:
  std::vector<llvm::Value*> transposed(std::vector<llvm::Value*> rows);

  Conversions& conversions_;
  Indices& indices_;
  Memory& memory_;
  Values& values_;
};

}  // namespace hone::backend::cpu
