// backend/cpu/operators.h - emits operators and functions of values.
#pragma once

#include "hone/backend/cpu/emit_context.h"
#include "hone/ir/expr.h"

namespace hone::backend::cpu {

[[nodiscard]] bool is_unsigned(DType type);

class Operators : EmitterPart {
 public:
  explicit Operators(EmitContext& context) : EmitterPart(context) {}

  llvm::Value* binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* negative(llvm::Value* x);  // x is a float
  // Applies a function of floats.
  llvm::Value* function(ir::Op op, llvm::Value* x, DType type);
  llvm::Value* identity(ir::Op op, DType type);  // the neutral element
  // Joins the lanes, by halves until one is left.
  llvm::Value* reduce_lanes(llvm::Value* vector, ir::Op op, DType type);

 private:
  llvm::Value* float_binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* int_binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* divide(ir::Op op, llvm::Value* a, llvm::Value* b, bool no_sign);
  llvm::Value* shift(ir::Op op, llvm::Value* a, llvm::Value* by, bool no_sign);
  llvm::Value* library_call(const char* name, llvm::ArrayRef<llvm::Value*> args);
};

}  // namespace hone::backend::cpu
