// backend/cpu/operators.h - emits operators and functions of values.
#pragma once

#include "hone/backend/cpu/emit_context.h"
#include "hone/ir/expr.h"

namespace hone::backend::cpu {

[[nodiscard]] bool is_unsigned(DType type);

// How a reduction joins two parts.
struct Combining {
  ir::Op op;
  bool keeps_nan = false;  // an extreme of floats is NaN if a part is
};

class Operators : EmitterPart {
 public:
  explicit Operators(EmitContext& context) : EmitterPart(context) {}

  llvm::Value* binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  // Emits the extreme of two floats, or NaN if one of them is.
  llvm::Value* nan_or_extreme(ir::Op op, llvm::Value* a, llvm::Value* b);
  llvm::Value* negative(llvm::Value* x);  // x is a float
  // Applies a function of floats.
  llvm::Value* function(ir::Op op, llvm::Value* x, DType type);
  // Emits GELU (ir/gelu.h).
  llvm::Value* gelu(llvm::Value* x, bool by_tanh, DType type);
  llvm::Value* identity(ir::Op op, DType type);  // the neutral element
  // Joins the lanes, by halves until one is left.
  llvm::Value* reduce_lanes(llvm::Value* vector, const Combining& by, DType type);
  llvm::Value* combined(const Combining& by, llvm::Value* a, llvm::Value* b, DType type);

 private:
  llvm::Value* float_binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* int_binary(ir::Op op, llvm::Value* a, llvm::Value* b, DType type);
  llvm::Value* divide(ir::Op op, llvm::Value* a, llvm::Value* b, bool no_sign);
  llvm::Value* shift(ir::Op op, llvm::Value* a, llvm::Value* by, bool no_sign);
  llvm::Value* library_call(const char* name, llvm::ArrayRef<llvm::Value*> args);
};

}  // namespace hone::backend::cpu
