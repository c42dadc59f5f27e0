// backend/cpu/conversions.h - emits conversions between element types, and between a value and its
// form in memory.
#pragma once

#include "hone/backend/cpu/emit_context.h"

namespace hone::backend::cpu {

class Conversions : EmitterPart {
 public:
  explicit Conversions(EmitContext& context) : EmitterPart(context) {}

  llvm::Type* memory_type(DType type);
  llvm::Value* from_memory(llvm::Value* v, DType type);
  llvm::Value* to_memory(llvm::Value* v, DType type);
  llvm::Value* convert(llvm::Value* v, DType from, DType to);
  llvm::Value* reinterpret(llvm::Value* v, DType from, DType to);

 private:
  llvm::Value* cast_float(llvm::Value* v, llvm::Type* type);
  llvm::Value* narrow_to_odd(llvm::Value* v);
  llvm::Value* float_of_half(llvm::Value* bits);
  llvm::Value* half_of_float(llvm::Value* v);
};

}  // namespace hone::backend::cpu
