// backend/cpu/emit_value.h - emits expressions.
#pragma once

#include <unordered_map>
#include <vector>

#include "hone/backend/cpu/emit_memory.h"

namespace hone::backend::cpu {

class Scans;

class Values : EmitterPart {
 public:
  Values(EmitContext& context, Conversions& conversions, Operators& operators, Indices& indices,
         Memory& memory, const Scans& scans)
      : EmitterPart(context),
        conversions_(conversions),
        operators_(operators),
        indices_(indices),
        memory_(memory),
        scans_(scans) {}

  llvm::Value* value(const ir::Expr& e);
  // Returns whether an expression is an integer at a fixed place of memory that the phase does not
  // write.
  [[nodiscard]] bool is_fixed(const ir::Expr& e) const;
  // Loads such an integer here.
  llvm::Value* load_fixed(const ir::ExprNode& load);
  // Returns the value that a store writes if its own element is `element`.
  llvm::Value* updated(const ir::StmtNode& store, llvm::Value* element);
  // Computes expressions here, before the loop that uses their values.
  void hoist(const std::vector<ir::Expr>& expressions);
  void end_hoisting() { hoisted_.clear(); }

 private:
  llvm::Value* compare(const ir::ExprNode& e);
  llvm::Value* binary(const ir::ExprNode& e);
  llvm::Value* load(const ir::ExprNode& e);
  llvm::Value* logical(const ir::ExprNode& e);
  llvm::Value* arithmetic(const ir::ExprNode& e);
  llvm::Value* power(const ir::ExprNode& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* with_known(const ir::ExprNode& e, llvm::Value* a, llvm::Value* b);
  llvm::Value* activation(const ir::ExprNode& product);
  llvm::Value* unary(const ir::ExprNode& e);
  llvm::Value* select(const ir::ExprNode& e);
  llvm::Value* select_lanes(const ir::ExprNode& e, llvm::Value* test);
  llvm::Value* load_or_constant(const ir::ExprNode& select, llvm::Value* test);
  llvm::Value* nan_or_extreme(const ir::ExprNode& e);
  llvm::Value* branch_select(const ir::ExprNode& e, llvm::Value* condition);

  Conversions& conversions_;
  Operators& operators_;
  Indices& indices_;
  Memory& memory_;
  const Scans& scans_;
  // The store whose own element has the value.
  const ir::StmtNode* updated_ = nullptr;
  llvm::Value* element_ = nullptr;
  // Values that were computed before their loop.
  std::unordered_map<const ir::ExprNode*, llvm::Value*> hoisted_;
};

}  // namespace hone::backend::cpu
