// backend/cpu/emit_filter.h - emits a filter (lane_analysis.h) on lanes: those that pass a test are
// packed and stored as a whole vector.
#pragma once

#include "hone/backend/cpu/emit_value.h"

namespace hone::backend::cpu {

class Filters : EmitterPart {
 public:
  Filters(EmitContext& context, Conversions& conversions, Indices& indices, Memory& memory,
          Values& values)
      : EmitterPart(context),
        conversions_(conversions),
        indices_(indices),
        memory_(memory),
        values_(values) {}

  void emit(const ir::StmtNode& s);

 private:
  llvm::Value* pack_lanes(llvm::Value* all, llvm::Value* passes);
  llvm::Value* pack_by_table(llvm::Value* all, llvm::Value* passes);

  Conversions& conversions_;
  Indices& indices_;
  Memory& memory_;
  Values& values_;
};

}  // namespace hone::backend::cpu
