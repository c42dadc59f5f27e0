// backend/cpu/emit_index.h - emits loops at run time, and integers as linear forms over the loops'
// variables. What a form or an address shares with others is computed in the header of the
// outermost loop that knows it; an address that moves with a loop is a pointer that the loop
// advances, so only a constant displacement is left at the access.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "hone/backend/cpu/emit_context.h"
#include "hone/backend/cpu/operators.h"

namespace hone::backend::cpu {

class Values;

class Indices : EmitterPart {
 public:
  Indices(EmitContext& context, Operators& operators, Values& values)
      : EmitterPart(context), operators_(operators), values_(values) {}

  void begin_function(llvm::BasicBlock* header);
  void begin_loop(llvm::Value* min, llvm::Value* end, bool may_be_empty, Range range);
  [[nodiscard]] IndexForm loop_index() const { return IndexSpace::of_atom(scopes_.back().atom); }
  void end_loop(llvm::Value* end);

  IndexForm index(const ir::Expr& e);
  llvm::Value* form_value(const IndexForm& form);  // i64 or a vector of i64
  llvm::Value* uniform_value(const IndexForm& form);
  // Compares a difference with 0.
  llvm::Value* compare_forms(ir::Op op, const IndexForm& difference);
  llvm::Value* count_in_lanes(const ir::ExprNode& e);  // null if it is no loop's number
  // Returns the address of the element at a place; `id` is the number of the buffer.
  llvm::Value* address(llvm::Value* base, int id, const IndexForm& place, int64_t element_bytes);

 private:
  // A loop at run time, or the function itself.
  struct Scope {
    llvm::BasicBlock* preheader = nullptr;  // ends in a jump to the header
    llvm::BasicBlock* header = nullptr;  // holds values that the loop computes once per iteration
    llvm::BasicBlock* exit = nullptr;
    int atom = -1;
    llvm::Value* min = nullptr;
    llvm::PHINode* counter = nullptr;
    // Each with the bytes by which it advances.
    std::vector<std::pair<llvm::PHINode*, int64_t>> pointers;
    // Multiples of the counter in all lanes, by number of lanes and factor.
    std::map<std::pair<int, int64_t>, llvm::PHINode*> counts;
    std::map<std::vector<int64_t>, llvm::Value*> known;  // values by buffer and terms
  };
  int fixed_atom(const ir::ExprNode& load);
  llvm::Value* atom_value(int atom);
  llvm::Value* compound_value(const Atom& atom);
  llvm::Value* compare_lane(llvm::CmpInst::Predicate predicate, const IndexForm& difference);
  llvm::Value* moved(Scope& scope, llvm::Value* pointer, int atom, int64_t bytes);

  Operators& operators_;
  Values& values_;
  std::vector<Scope> scopes_;
  std::vector<llvm::Value*> atom_values_;
  // Only looked up, never iterated, as its order is that of addresses.
  std::map<std::pair<const ir::Buffer*, std::vector<int64_t>>, int> fixed_;
};

}  // namespace hone::backend::cpu
