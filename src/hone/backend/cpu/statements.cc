#include "hone/backend/cpu/statements.h"

#include <algorithm>

#include "hone/backend/cpu/signs_of_zeros.h"
#include "hone/ir/loads.h"

namespace hone::backend::cpu {
namespace {

using ir::ForKind;
using ir::Op;
using ir::StmtKind;
using ir::StmtNode;

// Returns whether a store updates what it writes, or multiplies by known numbers, as a transform of
// Winograd's algorithm does.
bool is_sum_of_products(const StmtNode& s) {
  bool found = ir::loads_from(s.value, s.buffer.get());
  ir::visit(s.value, [&](const ir::Expr& e) {
    found = found || (e->op == Op::kLoad && !e->buffer->values.empty());
  });
  return found;
}

}  // namespace

void Statements::emit_all(const std::vector<ir::Stmt>& body) {
  for (const ir::Stmt& s : body) {
    if (failed()) return;
    emit(*s);
  }
}

void Statements::emit_copies(const std::vector<ir::Stmt>& body, int copies) {
  const int outer = copies_;
  if (copies > 1) copies_ = copies;
  emit_all(body);
  copies_ = outer;
}

void Statements::emit(const StmtNode& s) {
  switch (s.kind) {
    case StmtKind::kFor: return emit_for(s);
    case StmtKind::kIf: return emit_if(s);
    case StmtKind::kStore: return emit_store(s);
    case StmtKind::kBlock: return emit_all(s.body);
    case StmtKind::kAlloc: return emit_alloc(s);
    case StmtKind::kPrefetch: return memory_.prefetch(s);
    case StmtKind::kExtern: return emit_extern(s);
    default: return fail(invalid("a statement of GPUs in code of a CPU"));
  }
}

void Statements::emit_if(const StmtNode& s) {
  llvm::Value* test = values_.value(s.condition);
  if (failed()) return;
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(test)) {
    if (known->isOne()) emit_all(s.body);
    return;
  }
  if (test->getType()->isVectorTy()) {
    const Lanes outer = lanes_;
    lanes_.mask = both(outer.mask, test);
    emit_all(s.body);
    lanes_ = outer;
    return;
  }
  llvm::BasicBlock* then = new_block("then");
  llvm::BasicBlock* after = new_block("after");
  builder_.CreateCondBr(test, then, after);
  builder_.SetInsertPoint(then);
  emit_all(s.body);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

// A buffer allocated inside a vectorized loop is private to the iteration: it gets one copy per
// lane, side by side.
void Statements::emit_alloc(const StmtNode& s) {
  const int64_t outer = memory_.allocate(*s.buffer, copies_);
  emit_all(s.body);
  memory_.release(*s.buffer, outer);
}

void Statements::emit_extern(const StmtNode& s) {
  llvm::Value* list = entry_alloca(builder_.getPtrTy(), static_cast<int64_t>(s.buffers.size()));
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    builder_.CreateStore(memory_.base_of(s.buffers[i].get()),
                         builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), list, i));
  }
  const llvm::FunctionCallee callee = context_.module.getOrInsertFunction(
      s.name, llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy()}, false));
  builder_.CreateCall(callee, {list});
}

void Statements::emit_for(const StmtNode& s) {
  switch (s.for_kind) {
    case ForKind::kUnrolled: return emit_unrolled(s);
    case ForKind::kVectorized:
      if (!vector_loops_.emit(s)) emit_serial(s);
      return;
    case ForKind::kSerial:
    case ForKind::kParallel: return emit_serial(s);
    default: return fail(invalid("a loop over threads of a GPU in code of a CPU"));
  }
}

void Statements::emit_unrolled(const StmtNode& s) {
  if (squares_.emit(s)) return;
  const IndexForm extent = indices_.index(s.extent);
  if (!extent.is_constant()) return emit_serial(s);
  const IndexForm min = indices_.index(s.min);
  for (int64_t i = 0; i < extent.constant && !failed(); ++i) {
    IndexForm at = min;
    at.constant += i;
    space_.bind(s.var.get(), at);
    emit_all(s.body);
  }
}

// for k: x[i] = x[i] op e  ->  a = x[i]; for k: a = a op e; x[i] = a. Only where x[i] surely
// exists, since the loop might not have touched it.
bool Statements::emit_accumulated(const StmtNode& s) {
  if (accumulated_ || lanes_.width > 1) return false;
  const StmtNode* store_node = invariant_reduction(s);
  if (!store_node) return false;
  const ir::Buffer& buffer = *store_node->buffer;
  if (buffer.dtype == DType::kBool || dtype_bytes(buffer.dtype) == 2)
    return false;  // rounded by each store
  const Access target = memory_.access(store_node->buffer, store_node->indices);
  const Range range = space_.range(target.form);
  if (failed() || range.lo < 0 || range.hi >= buffer.num_elements()) return false;
  accumulator_ = entry_alloca(type_of(buffer.dtype), 1);
  builder_.CreateStore(memory_.load(target), accumulator_);
  accumulated_ = store_node;
  emit_serial(s);
  accumulated_ = nullptr;
  if (!failed()) memory_.store(target, builder_.CreateLoad(type_of(buffer.dtype), accumulator_));
  return true;
}

void Statements::emit_serial(const StmtNode& s) {
  if (emit_accumulated(s)) return;
  const IndexForm min = indices_.index(s.min);
  const IndexForm extent = indices_.index(s.extent);
  if (failed()) return;
  if (extent.is_constant() && extent.constant <= 0) return;
  if (extent.is_constant() && extent.constant == 1) {
    space_.bind(s.var.get(), min);
    return emit_all(s.body);
  }
  const Range low = space_.range(min);
  const Range length = space_.range(extent);
  llvm::Value* begin = indices_.uniform_value(min);
  llvm::Value* end = indices_.uniform_value(add(min, extent));
  if (failed()) return;
  indices_.begin_loop(begin, end, length.lo < 1,
                      {low.lo, std::max(low.lo, low.hi + length.hi - 1)});
  space_.bind(s.var.get(), indices_.loop_index());
  emit_all(s.body);
  indices_.end_loop(end);
}

void Statements::emit_store(const StmtNode& s) {
  if (++context_.statements > context_.max_statements) {
    return fail(error(Code::kUnsupported, "more than {} statements after unrolling",
                      context_.max_statements));
  }
  const SignsOfZeros exact(builder_, !is_sum_of_products(s));
  if (&s == accumulated_) {
    llvm::Value* sum =
        values_.updated(s, builder_.CreateLoad(type_of(s.buffer->dtype), accumulator_));
    if (!failed()) builder_.CreateStore(sum, accumulator_);
    return;
  }
  if (scans_.emit(s)) return;
  const Access target = memory_.access(s.buffer, s.indices);
  if (failed()) return;
  if (lanes_.width > 1 && !space_.varying(target.form)) {
    if (!ir::is_const_int(s.value) && reduction_op(s))
      return vector_loops_.emit_reduction(s, target);
  }
  memory_.store(target, values_.value(s.value));
}

}  // namespace hone::backend::cpu
