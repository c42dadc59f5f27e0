#include <llvm/IR/Intrinsics.h>

#include "hone/backend/cpu/emitter.h"

namespace hone::backend::cpu {

using ir::Expr;
using ir::Op;

// ---- integers: linear forms ----

IndexForm PhaseEmitter::index(const Expr& e) {
  if (failed()) return {};
  return space_.form(e, [this](const Expr& opaque) {
    llvm::Value* v = value(opaque);
    const int atom =
        space_.add_opaque(static_cast<int>(scopes_.size()) - 1, v->getType()->isVectorTy());
    atom_values_.resize(static_cast<size_t>(space_.num_atoms()));
    atom_values_[static_cast<size_t>(atom)] = v;
    return atom;
  });
}

llvm::Value* PhaseEmitter::atom_value(int id) {
  atom_values_.resize(static_cast<size_t>(space_.num_atoms()));
  if (llvm::Value* known = atom_values_[static_cast<size_t>(id)]) return known;
  const Atom atom = space_.atom(id);
  if (atom.in_place) return compound_value(atom);
  const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(scopes_[static_cast<size_t>(atom.depth)].header->getTerminator());
  llvm::Value* made = compound_value(atom);
  atom_values_[static_cast<size_t>(id)] = made;
  return made;
}

llvm::Value* PhaseEmitter::compound_value(const Atom& atom) {
  llvm::Value* a = form_value(atom.args[0]);
  llvm::Value* b = form_value(atom.args[1]);
  match(a, b);
  return int_binary(atom.op, a, b, DType::kI64);
}

llvm::Value* PhaseEmitter::uniform_value(const IndexForm& form) {
  llvm::Value* sum = nullptr;
  for (const auto& [atom, coefficient] : form.terms) {
    if (space_.atom(atom).varying) continue;
    llvm::Value* v = atom_value(atom);
    if (coefficient != 1) v = builder_.CreateMul(v, i64(coefficient));
    sum = sum ? builder_.CreateAdd(sum, v) : v;
  }
  if (!sum) return i64(form.constant);
  return form.constant == 0 ? sum : builder_.CreateAdd(sum, i64(form.constant));
}

llvm::Value* PhaseEmitter::form_value(const IndexForm& form) {
  llvm::Value* sum = uniform_value(form);
  if (!space_.varying(form)) return sum;
  sum = splat(sum);
  for (const auto& [atom, coefficient] : form.terms) {
    if (!space_.atom(atom).varying) continue;
    llvm::Value* v = atom_value(atom);
    sum = builder_.CreateAdd(sum, builder_.CreateMul(v, splat(i64(coefficient))));
  }
  if (form.lane == 0) return sum;
  return builder_.CreateAdd(
      sum, builder_.CreateMul(lane_numbers(builder_.getInt64Ty()), splat(i64(form.lane))));
}

// ---- conditions ----

llvm::Value* PhaseEmitter::condition(const Expr& e) { return value(e); }

// difference < 0 (kLt) or <= 0 (kLe), == 0, != 0.
llvm::Value* PhaseEmitter::compare_forms(Op op, const IndexForm& difference) {
  const Range range = space_.range(difference);
  if (op == Op::kLt && range.hi < 0) return builder_.getTrue();
  if (op == Op::kLt && range.lo >= 0) return builder_.getFalse();
  if (op == Op::kLe && range.hi <= 0) return builder_.getTrue();
  if (op == Op::kLe && range.lo > 0) return builder_.getFalse();
  if (op == Op::kEq && (range.lo > 0 || range.hi < 0)) return builder_.getFalse();
  if (op == Op::kNe && (range.lo > 0 || range.hi < 0)) return builder_.getTrue();
  const llvm::CmpInst::Predicate predicate = op == Op::kLt   ? llvm::CmpInst::ICMP_SLT
                                             : op == Op::kLe ? llvm::CmpInst::ICMP_SLE
                                             : op == Op::kEq ? llvm::CmpInst::ICMP_EQ
                                                             : llvm::CmpInst::ICMP_NE;
  const bool ordered = op == Op::kLt || op == Op::kLe;
  if (ordered && (difference.lane == 1 || difference.lane == -1) && is_strided(difference)) {
    // lane < -rest, or lane > rest: the bound is clamped, so that 32 bits hold the comparison.
    IndexForm rest = difference;
    rest.lane = 0;
    const bool ascending = difference.lane == 1;
    llvm::Value* bound = uniform_value(ascending ? scaled(rest, -1) : rest);
    bound = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bound, i64(-1));
    bound = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, bound, i64(lanes_.width));
    llvm::Value* lanes = lane_numbers(builder_.getInt32Ty());
    llvm::Value* bounds = splat(builder_.CreateTrunc(bound, builder_.getInt32Ty()));
    return ascending ? builder_.CreateICmp(predicate, lanes, bounds)
                     : builder_.CreateICmp(predicate, bounds, lanes);
  }
  llvm::Value* left = form_value(difference);
  return builder_.CreateICmp(predicate, left, llvm::Constant::getNullValue(left->getType()));
}

}  // namespace hone::backend::cpu
