#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <set>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emitter.h"
#include "hone/base/round_up.h"
#include "hone/ir/visit.h"

namespace hone::backend::cpu {
namespace {

using ir::ForKind;
using ir::StmtKind;
using ir::StmtNode;

constexpr int64_t kStackLimit = 64 * 1024;  // larger kStack buffers go to scratch memory
constexpr int64_t kBaseAlignment = 64;

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape, int64_t row) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = d == shape.size() - 1 ? row : strides[d] * shape[d];
  }
  return strides;
}

struct Usage {
  std::set<const ir::Buffer*> read, written;
};
void collect(const StmtNode& s, Usage& usage) {
  ir::for_each_expr(s, [&](const ir::Expr& e) {
    ir::visit(e, [&](const ir::Expr& node) {
      if (node->op == ir::Op::kLoad) usage.read.insert(node->buffer.get());
    });
  });
  if (s.kind == StmtKind::kStore) usage.written.insert(s.buffer.get());
  if (s.kind == StmtKind::kPrefetch) usage.read.insert(s.buffer.get());
  for (const ir::BufferPtr& b : s.buffers) usage.written.insert(b.get());
}

}  // namespace

PhaseEmitter::PhaseEmitter(llvm::Module& module, const ir::Program& program,
                           std::span<const ir::InPlacePair> in_place, const target::Target& target,
                           const EmitLimits& limits)
    : module_(module),
      program_(program),
      in_place_(in_place),
      target_(target),
      converts_half_(converts_half(target)),
      limits_(limits),
      builder_(module.getContext()) {
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  flags.setNoSignedZeros();
  builder_.setFastMathFlags(flags);
}

void PhaseEmitter::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

llvm::BasicBlock* PhaseEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

llvm::Value* PhaseEmitter::entry_alloca(llvm::Type* type, int64_t count) {
  const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::Type* array =
      llvm::ArrayType::get(type, static_cast<uint64_t>(std::max<int64_t>(count, 1)));
  llvm::AllocaInst* memory = builder_.CreateAlloca(array);
  memory->setAlignment(llvm::Align(kBaseAlignment));
  return memory;
}

void PhaseEmitter::add_buffer(const ir::Buffer* buffer, BufferInfo info) {
  info.id = num_buffers_++;
  buffers_[buffer] = std::move(info);
}

// The exported function unpacks args; the work is in an internal one, whose pointer arguments can
// say that they don't alias.
void PhaseEmitter::collect_buffers(const ir::Phase& phase, const std::string& symbol) {
  Usage usage;
  ir::for_each_stmt(*phase.body, [&](const StmtNode& s) { collect(s, usage); });
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* const pointer = builder_.getPtrTy();
  llvm::Type* const word = builder_.getInt64Ty();
  std::vector<size_t> used;
  for (size_t i = 0; i < program_.params.size(); ++i) {
    const ir::Buffer* buffer = program_.params[i].buffer.get();
    const bool known = !buffer->values.empty() && !usage.written.contains(buffer);
    if (!known && (usage.read.contains(buffer) || usage.written.contains(buffer)))
      used.push_back(i);
  }
  std::vector<llvm::Type*> types(used.size() + 1, pointer);
  types.insert(types.end(), {word, word});
  function_ =
      llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), types, false),
                             llvm::Function::InternalLinkage, symbol + kBodySuffix, module_);
  llvm::Function* kernel = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getInt32Ty(),
                              {pointer, pointer, word, word, builder_.getInt32Ty()}, false),
      llvm::Function::ExternalLinkage, symbol, module_);
  const std::string width = std::to_string(target_.vector_bytes * 8);
  for (llvm::Function* f : {function_, kernel}) {
    f->addFnAttr(llvm::Attribute::NoUnwind);
    f->addFnAttr("prefer-vector-width", width);
    f->addFnAttr("min-legal-vector-width", width);
    f->addFnAttr("target-cpu", target_.cpu);
    const std::string features = feature_string(target_);
    if (!features.empty()) f->addFnAttr("target-features", features);
  }
  function_->addFnAttr(llvm::Attribute::NoInline);

  builder_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", kernel));
  std::vector<llvm::Value*> arguments;
  for (const size_t i : used) {
    llvm::Value* slot = builder_.CreateConstInBoundsGEP1_64(pointer, kernel->getArg(0), i);
    arguments.push_back(builder_.CreateLoad(pointer, slot));
  }
  arguments.insert(arguments.end(), {kernel->getArg(1), kernel->getArg(2), kernel->getArg(3)});
  builder_.CreateCall(function_, arguments);
  builder_.CreateRet(builder_.getInt32(0));

  std::vector<bool> shares(used.size() + 1, false);  // memory with another argument, perhaps
  for (const ir::InPlacePair& pair : in_place_) {
    for (size_t a = 0; a < used.size(); ++a)
      shares[a] = shares[a] || used[a] == pair.input || used[a] == pair.output;
  }
  for (unsigned a = 0; a <= used.size(); ++a) {
    llvm::AttrBuilder attributes(context);
    const bool given = a < used.size();  // by the caller, not the scratch memory
    const int64_t aligned = given ? limits_.argument_alignment : kBaseAlignment;
    attributes.addAlignmentAttr(static_cast<uint64_t>(aligned));
    if (!shares[a]) attributes.addAttribute(llvm::Attribute::NoAlias);
    if (given) {
      const ir::Buffer* buffer = program_.params[used[a]].buffer.get();
      const int64_t bytes = buffer->bytes();
      if (bytes > 0) attributes.addDereferenceableAttr(static_cast<uint64_t>(bytes));
      const bool read_only = !usage.written.contains(buffer);
      if (read_only) attributes.addAttribute(llvm::Attribute::ReadOnly);
      BufferInfo info;
      info.base = function_->getArg(a);
      info.alignment = aligned;
      info.strides = dense_strides(buffer->shape, buffer->shape.empty() ? 1 : buffer->shape.back());
      info.read_only = read_only && !shares[a];
      add_buffer(buffer, std::move(info));
    }
    function_->addParamAttrs(a, attributes);
  }
  scratch_ = function_->getArg(static_cast<unsigned>(used.size()));
  for (const ir::Buffer* buffer : usage.read) {
    if (buffer->values.empty() || buffers_.contains(buffer)) continue;
    BufferInfo info;  // its base is made when an index is not constant
    info.strides = dense_strides(buffer->shape, buffer->shape.empty() ? 1 : buffer->shape.back());
    info.read_only = true;
    add_buffer(buffer, std::move(info));
  }
}

Status PhaseEmitter::emit(const ir::Phase& phase, const std::string& symbol) {
  collect_buffers(phase, symbol);
  llvm::BasicBlock* entry = new_block("entry");
  llvm::BasicBlock* start = new_block("start");
  llvm::BasicBlock* done = new_block("done");
  builder_.SetInsertPoint(entry);
  entry_end_ = builder_.CreateBr(start);
  scopes_.emplace_back();
  scopes_.back().header = entry;
  builder_.SetInsertPoint(start);
  llvm::Value* const first = function_->getArg(function_->arg_size() - 2);
  llvm::Value* const last = function_->getArg(function_->arg_size() - 1);
  const StmtNode& root = *phase.body;
  if (root.kind == StmtKind::kFor && root.for_kind == ForKind::kParallel &&
      ir::is_const_int(root.extent)) {
    begin_loop(first, last, true, {0, root.extent->int_value - 1});
    space_.bind(root.var.get(), add(loop_index(), index(root.min)));
    emit_all(root.body);
    end_loop(last);
    builder_.CreateBr(done);
  } else {
    llvm::BasicBlock* work = new_block("work");
    llvm::Value* runs = builder_.CreateAnd(builder_.CreateICmpEQ(first, i64(0)),
                                           builder_.CreateICmpSGT(last, i64(0)));
    builder_.CreateCondBr(runs, work, done);
    builder_.SetInsertPoint(work);
    emit_stmt(root);
    builder_.CreateBr(done);
  }
  builder_.SetInsertPoint(done);
  builder_.CreateRetVoid();
  return status_;
}

void PhaseEmitter::emit_all(const std::vector<ir::Stmt>& body) {
  for (const ir::Stmt& s : body) {
    if (failed()) return;
    emit_stmt(*s);
  }
}

void PhaseEmitter::emit_stmt(const StmtNode& s) {
  switch (s.kind) {
    case StmtKind::kFor: return emit_for(s);
    case StmtKind::kIf: return emit_if(s);
    case StmtKind::kStore: return emit_store(s);
    case StmtKind::kBlock: return emit_all(s.body);
    case StmtKind::kAlloc: return emit_alloc(s);
    case StmtKind::kPrefetch: return emit_prefetch(s);
    case StmtKind::kExtern: return emit_extern(s);
  }
}

void PhaseEmitter::emit_if(const StmtNode& s) {
  if (lanes_.width > 1 && &s == filter_) return emit_filter(s);
  llvm::Value* test = condition(s.condition);
  if (failed()) return;
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(test)) {
    if (known->isOne()) emit_all(s.body);
    return;
  }
  if (test->getType()->isVectorTy()) {
    const Lanes outer = lanes_;
    lanes_.mask = outer.mask ? builder_.CreateAnd(outer.mask, test) : test;
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
void PhaseEmitter::emit_alloc(const StmtNode& s) {
  const ir::Buffer* buffer = s.buffer.get();
  const int64_t element = dtype_bytes(buffer->dtype);
  const int64_t copies = alloc_copies_;
  BufferInfo info;
  info.lane_copies = static_cast<int>(copies);
  const std::vector<int64_t>& shape = buffer->shape;
  int64_t row = shape.empty() ? 1 : shape.back();
  const int64_t native = std::max<int64_t>(target_.vector_bytes / element, 1);
  const int64_t padding = native;  // behind the last row: a tail reads whole vectors
  if (buffer->scope == ir::Scope::kRegister && copies == 1) {
    // Rows are padded to whole vectors, so that a tail's full-width access stays in its own row.
    const int64_t tail = row % native;
    row =
        row - tail + (tail ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tail))) : 0);
    info.padded_row = row;
  }
  info.strides = dense_strides(shape, row);
  const int64_t elements =
      shape.empty() ? 1 : info.strides[0] * (shape.size() == 1 ? row : shape[0]);
  const int64_t count = elements * copies + padding;
  const bool scratch = buffer->scope == ir::Scope::kThread || count * element > kStackLimit;
  const int64_t outer_top = scratch_top_;
  if (scratch) {
    const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(entry_end_);
    info.base = advance(scratch_, scratch_top_);
    scratch_top_ += round_up(count * element, kBaseAlignment);
    scratch_high_ = std::max(scratch_high_, scratch_top_);
  } else {
    info.base = entry_alloca(memory_type(buffer->dtype), count);
    info.local = true;
  }
  add_buffer(buffer, std::move(info));
  emit_all(s.body);
  scratch_top_ = outer_top;
  buffers_.erase(buffer);
}

void PhaseEmitter::emit_extern(const StmtNode& s) {
  llvm::Value* list = entry_alloca(builder_.getPtrTy(), static_cast<int64_t>(s.buffers.size()));
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const auto it = buffers_.find(s.buffers[i].get());
    HONE_ASSERT(it != buffers_.end(), "an extern statement names an unknown buffer");
    builder_.CreateStore(it->second.base,
                         builder_.CreateConstInBoundsGEP1_64(builder_.getPtrTy(), list, i));
  }
  const llvm::FunctionCallee callee = module_.getOrInsertFunction(
      s.name, llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy()}, false));
  builder_.CreateCall(callee, {list});
}

void PhaseEmitter::emit_for(const StmtNode& s) {
  switch (s.for_kind) {
    case ForKind::kUnrolled: return emit_unrolled(s);
    case ForKind::kVectorized: return emit_vectorized(s);
    case ForKind::kSerial:
    case ForKind::kParallel: return emit_serial(s);
  }
}

void PhaseEmitter::emit_unrolled(const StmtNode& s) {
  if (emit_transposed(s)) return;
  const IndexForm extent = index(s.extent);
  if (!extent.is_constant()) return emit_serial(s);
  const IndexForm min = index(s.min);
  for (int64_t i = 0; i < extent.constant && !failed(); ++i) {
    IndexForm at = min;
    at.constant += i;
    space_.bind(s.var.get(), at);
    emit_all(s.body);
  }
}

// for k: x[i] = x[i] op e  ->  a = x[i]; for k: a = a op e; x[i] = a. Only where x[i] surely
// exists, since the loop might not have touched it.
bool PhaseEmitter::emit_accumulated(const StmtNode& s) {
  if (accumulated_ || lanes_.width > 1) return false;
  const StmtNode* store_node = invariant_reduction(s);
  if (!store_node) return false;
  const ir::Buffer& buffer = *store_node->buffer;
  if (buffer.dtype == DType::kBool || dtype_bytes(buffer.dtype) == 2)
    return false;  // rounded by each store
  const Access target = access(store_node->buffer, store_node->indices);
  const Range range = space_.range(target.form);
  if (failed() || range.lo < 0 || range.hi >= buffer.num_elements()) return false;
  accumulator_ = entry_alloca(type_of(buffer.dtype), 1);
  builder_.CreateStore(load(target), accumulator_);
  accumulated_ = store_node;
  emit_serial(s);
  accumulated_ = nullptr;
  if (!failed()) store(target, builder_.CreateLoad(type_of(buffer.dtype), accumulator_));
  return true;
}

void PhaseEmitter::emit_serial(const StmtNode& s) {
  if (emit_accumulated(s)) return;
  const IndexForm min = index(s.min);
  const IndexForm extent = index(s.extent);
  if (failed()) return;
  if (extent.is_constant() && extent.constant <= 0) return;
  if (extent.is_constant() && extent.constant == 1) {
    space_.bind(s.var.get(), min);
    return emit_all(s.body);
  }
  const Range low = space_.range(min);
  const Range length = space_.range(extent);
  llvm::Value* begin = uniform_value(min);
  llvm::Value* end = uniform_value(add(min, extent));
  if (failed()) return;
  begin_loop(begin, end, length.lo < 1, {low.lo, std::max(low.lo, low.hi + length.hi - 1)});
  space_.bind(s.var.get(), loop_index());
  emit_all(s.body);
  end_loop(end);
}

void PhaseEmitter::begin_loop(llvm::Value* min, llvm::Value* end, bool may_be_empty, Range range) {
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

void PhaseEmitter::end_loop(llvm::Value* end) {
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

}  // namespace hone::backend::cpu
