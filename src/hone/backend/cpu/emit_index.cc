#include "hone/backend/cpu/emit_index.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "hone/backend/cpu/emit_value.h"

namespace hone::backend::cpu {
using ir::Expr;
using ir::Op;

namespace {

// A kernel knows few sizes; more numbers would keep registers from what the loops need.
constexpr size_t kMostFixed = 4;

}  // namespace

void Indices::begin_function(llvm::BasicBlock* header) {
  scopes_.emplace_back();
  scopes_.back().header = header;
}

void Indices::begin_loop(llvm::Value* min, llvm::Value* end, bool may_be_empty, Range range) {
  Scope scope;
  scope.preheader = new_block("preheader");
  scope.header = new_block("loop");
  scope.exit = new_block("exit");
  scope.min = min;
  if (may_be_empty) {
    builder_.CreateCondBr(builder_.CreateICmpSLT(min, end), scope.preheader, scope.exit);
  } else {
    builder_.CreateBr(scope.preheader);
  }
  builder_.SetInsertPoint(scope.preheader);
  builder_.CreateBr(scope.header);
  builder_.SetInsertPoint(scope.header);
  scope.counter = builder_.CreatePHI(builder_.getInt64Ty(), 2, "i");
  llvm::BasicBlock* body = new_block("body");
  builder_.CreateBr(body);
  builder_.SetInsertPoint(body);
  if (range.lo <= -Range::kUnknown || range.hi >= Range::kUnknown) range = Range();
  scope.atom = space_.add_variable(static_cast<int>(scopes_.size()), range);
  atom_values_.resize(static_cast<size_t>(space_.num_atoms()));
  atom_values_[static_cast<size_t>(scope.atom)] = scope.counter;
  scopes_.push_back(std::move(scope));
}

void Indices::end_loop(llvm::Value* end) {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  llvm::BasicBlock* latch = builder_.GetInsertBlock();
  llvm::Value* next = builder_.CreateAdd(scope.counter, i64(1), "", true, true);
  scope.counter->addIncoming(scope.min, scope.preheader);
  scope.counter->addIncoming(next, latch);
  for (auto& [pointer, bytes] : scope.pointers) {
    pointer->addIncoming(advance(pointer, bytes), latch);
  }
  for (const auto& [by, count] : scope.counts) {
    llvm::Type* word = count->getType()->getScalarType();
    llvm::Value* step =
        builder_.CreateVectorSplat(static_cast<unsigned>(by.first), integer(word, by.second));
    count->addIncoming(builder_.CreateAdd(count, step), latch);
  }
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), scope.header, scope.exit);
  builder_.SetInsertPoint(scope.exit);
}

IndexForm Indices::index(const Expr& e) {
  if (failed()) return {};
  return space_.form(e, [this](const Expr& opaque) {
    if (const int fixed = values_.is_fixed(opaque) ? fixed_atom(*opaque) : -1; fixed >= 0)
      return fixed;
    llvm::Value* v = values_.value(opaque);
    const int atom =
        space_.add_opaque(static_cast<int>(scopes_.size()) - 1, v->getType()->isVectorTy());
    atom_values_.resize(static_cast<size_t>(space_.num_atoms()));
    atom_values_[static_cast<size_t>(atom)] = v;
    return atom;
  });
}

// Returns the atom of a number that memory holds throughout the function, such as a size of the
// run. It is loaded where the function begins, and what is computed of it alone is computed there,
// too. Returns -1 if there are too many of them.
int Indices::fixed_atom(const ir::ExprNode& load) {
  std::vector<int64_t> place;
  for (const Expr& index : load.args) place.push_back(index->int_value);
  const bool is_full = fixed_.size() >= kMostFixed;
  const auto [found, is_new] = fixed_.try_emplace({load.buffer.get(), std::move(place)}, -1);
  if (!is_new || is_full) return found->second;
  const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(scopes_[0].header->getTerminator());
  const Lanes lanes = std::exchange(lanes_, {});
  llvm::Value* value = values_.load_fixed(load);
  lanes_ = lanes;
  found->second = space_.add_fixed();
  atom_values_.resize(static_cast<size_t>(space_.num_atoms()));
  atom_values_[static_cast<size_t>(found->second)] = value;
  return found->second;
}

llvm::Value* Indices::atom_value(int id) {
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

llvm::Value* Indices::compound_value(const Atom& atom) {
  llvm::Value* a = form_value(atom.args[0]);
  llvm::Value* b = form_value(atom.args[1]);
  match(a, b);
  return operators_.binary(atom.op, a, b, DType::kI64);
}

llvm::Value* Indices::uniform_value(const IndexForm& form) {
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

llvm::Value* Indices::form_value(const IndexForm& form) {
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

// base + terms, term by term from the outermost scope inwards. The pointer after the terms of one
// scope is computed in that scope's header and shared by all accesses that begin alike; the term of
// a loop's own variable becomes a pointer that the loop advances.
llvm::Value* Indices::address(llvm::Value* base, int id, const IndexForm& place,
                              int64_t element_bytes) {
  std::vector<std::pair<int, int64_t>> terms = place.terms;
  std::vector<std::pair<int, int64_t>> in_place;
  std::erase_if(terms, [&](const auto& term) {
    const Atom& atom = space_.atom(term.first);
    if (atom.in_place && !atom.varying) in_place.push_back(term);
    return atom.in_place;
  });
  std::stable_sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
    return space_.atom(a.first).depth < space_.atom(b.first).depth;
  });
  llvm::Value* pointer = base;
  std::vector<int64_t> key = {id};
  for (const auto& [atom, coefficient] : terms) {
    key.push_back(atom);
    key.push_back(coefficient);
    Scope& scope = scopes_[static_cast<size_t>(space_.atom(atom).depth)];
    llvm::Value*& known = scope.known[key];
    if (!known) known = moved(scope, pointer, atom, coefficient * element_bytes);
    pointer = known;
  }
  for (const auto& [atom, coefficient] : in_place) {
    pointer =
        builder_.CreateGEP(builder_.getInt8Ty(), pointer,
                           builder_.CreateMul(atom_value(atom), i64(coefficient * element_bytes)));
  }
  return advance(pointer, place.constant * element_bytes);
}

// The pointer after the term of an atom, which is computed in the atom's scope.
llvm::Value* Indices::moved(Scope& scope, llvm::Value* pointer, int atom, int64_t bytes) {
  const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  if (atom == scope.atom) {
    builder_.SetInsertPoint(scope.preheader->getTerminator());
    llvm::Value* first = builder_.CreateGEP(builder_.getInt8Ty(), pointer,
                                            builder_.CreateMul(scope.min, i64(bytes)));
    builder_.SetInsertPoint(scope.header, scope.header->begin());
    llvm::PHINode* moving = builder_.CreatePHI(builder_.getPtrTy(), 2);
    moving->addIncoming(first, scope.preheader);
    scope.pointers.emplace_back(moving, bytes);
    return moving;
  }
  llvm::Value* factor = atom_value(atom);
  builder_.SetInsertPoint(scope.header->getTerminator());
  return builder_.CreateGEP(builder_.getInt8Ty(), pointer, builder_.CreateMul(factor, i64(bytes)));
}

// difference < 0 (kLt) or <= 0 (kLe), == 0, != 0.
llvm::Value* Indices::compare_forms(Op op, const IndexForm& difference) {
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
  if (ordered && (difference.lane == 1 || difference.lane == -1) && space_.is_strided(difference))
    return compare_lane(predicate, difference);
  llvm::Value* left = form_value(difference);
  return builder_.CreateICmp(predicate, left, llvm::Constant::getNullValue(left->getType()));
}

// lane < -rest, or lane > rest: the bound is clamped, so that 32 bits hold the comparison.
llvm::Value* Indices::compare_lane(llvm::CmpInst::Predicate predicate,
                                   const IndexForm& difference) {
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

// The number of a loop's step as 32 bits in each lane, counted there: to be chosen by a mask a
// number in a scalar register would be broadcast for each vector.
llvm::Value* Indices::count_in_lanes(const ir::ExprNode& e) {
  if (e.op != Op::kCast || e.type != DType::kI32 || e.args[0]->type != DType::kI64 ||
      lanes_.width == 1)
    return nullptr;
  const IndexForm form = index(e.args[0]);
  if (failed() || form.terms.size() != 1) return nullptr;
  const auto [atom, factor] = form.terms[0];
  Scope& scope = scopes_[static_cast<size_t>(space_.atom(atom).depth)];
  if (scope.atom != atom) return nullptr;
  llvm::Type* word = builder_.getInt32Ty();
  const auto lanes = static_cast<unsigned>(lanes_.width);
  llvm::PHINode*& count = scope.counts[{lanes_.width, factor}];
  if (!count) {
    const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(scope.preheader->getTerminator());
    llvm::Value* first = builder_.CreateTrunc(builder_.CreateMul(scope.min, i64(factor)), word);
    first = builder_.CreateVectorSplat(lanes, first);
    builder_.SetInsertPoint(scope.header, scope.header->begin());
    count = builder_.CreatePHI(first->getType(), 2);
    count->addIncoming(first, scope.preheader);
  }
  llvm::Value* more = builder_.CreateVectorSplat(lanes, integer(word, form.constant));
  if (form.lane != 0) {
    llvm::Value* factors = builder_.CreateVectorSplat(lanes, integer(word, form.lane));
    more = builder_.CreateAdd(more, builder_.CreateMul(lane_numbers(word), factors));
  }
  return form.constant == 0 && form.lane == 0 ? count : builder_.CreateAdd(count, more);
}

}  // namespace hone::backend::cpu
