#include <algorithm>
#include <set>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emitter.h"
#include "hone/backend/cpu/statements.h"
#include "hone/ir/visit.h"

namespace hone::backend::cpu {
namespace {

using ir::ForKind;
using ir::StmtKind;
using ir::StmtNode;

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

// The parts of the emitter of a phase.
struct Parts {
  Parts(llvm::Module& module, const target::Cpu& target, int64_t max_statements)
      : context(module, target, max_statements) {}
  EmitContext context;
  Conversions conversions{context};
  Operators operators{context};
  Indices indices{context, operators, values};
  Memory memory{context, conversions, indices};
  Values values{context, conversions, operators, indices, memory, scans};
  Scans scans{context, operators, memory, values};
  Filters filters{context, conversions, indices, memory, values};
  Squares squares{context, conversions, indices, memory, values};
  VectorLoops vector_loops{context, operators, indices, memory, scans, values, filters, statements};
  Statements statements{context, indices, memory, scans, values, squares, vector_loops};
};

class PhaseEmitter : EmitterPart {
 public:
  PhaseEmitter(Parts& parts, const ir::Program& program, std::span<const ir::InPlacePair> in_place,
               int64_t argument_alignment, const ir::Phase& phase)
      : EmitterPart(parts.context),
        parts_(parts),
        program_(program),
        in_place_(in_place),
        argument_alignment_(argument_alignment),
        root_(*phase.body) {
    ir::for_each_stmt(root_, [&](const StmtNode& s) { collect(s, usage_); });
    for (size_t i = 0; i < program.params.size(); ++i) {
      const ir::Buffer* buffer = program.params[i].buffer.get();
      const bool known = !buffer->values.empty() && !usage_.written.contains(buffer);
      if (!known && (usage_.read.contains(buffer) || usage_.written.contains(buffer)))
        used_.push_back(i);
    }
  }

  void emit(const std::string& symbol) {
    make_functions(symbol);
    for (unsigned a = 0; a <= used_.size(); ++a) add_argument(a);
    add_known_buffers();
    emit_body();
  }

 private:
  // The exported function unpacks args; the work is in an internal one, whose pointer arguments can
  // say that they don't alias.
  void make_functions(const std::string& symbol) {
    llvm::Module& module = context_.module;
    llvm::Type* const pointer = builder_.getPtrTy();
    llvm::Type* const word = builder_.getInt64Ty();
    std::vector<llvm::Type*> types(used_.size() + 1, pointer);
    types.insert(types.end(), {word, word});
    context_.function =
        llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), types, false),
                               llvm::Function::InternalLinkage, symbol + kBodySuffix, module);
    llvm::Function* kernel = llvm::Function::Create(
        llvm::FunctionType::get(builder_.getInt32Ty(),
                                {pointer, pointer, word, word, builder_.getInt32Ty()}, false),
        llvm::Function::ExternalLinkage, symbol, module);
    const std::string width = std::to_string(target_.vector_bytes * 8);
    for (llvm::Function* f : {context_.function, kernel}) {
      f->addFnAttr(llvm::Attribute::NoUnwind);
      f->addFnAttr("prefer-vector-width", width);
      f->addFnAttr("min-legal-vector-width", width);
      f->addFnAttr("target-cpu", target_.model);
      const std::string features = feature_string(target_);
      if (!features.empty()) f->addFnAttr("target-features", features);
    }
    context_.function->addFnAttr(llvm::Attribute::NoInline);

    builder_.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", kernel));
    std::vector<llvm::Value*> arguments;
    for (const size_t i : used_) {
      llvm::Value* slot = builder_.CreateConstInBoundsGEP1_64(pointer, kernel->getArg(0), i);
      arguments.push_back(builder_.CreateLoad(pointer, slot));
    }
    arguments.insert(arguments.end(), {kernel->getArg(1), kernel->getArg(2), kernel->getArg(3)});
    builder_.CreateCall(context_.function, arguments);
    builder_.CreateRet(builder_.getInt32(0));
  }

  // Returns whether an argument may have its memory in common with another one.
  [[nodiscard]] bool shares_memory(unsigned a) const {
    return a < used_.size() &&
           std::any_of(in_place_.begin(), in_place_.end(), [&](const ir::InPlacePair& pair) {
             return used_[a] == pair.input || used_[a] == pair.output;
           });
  }

  // Says what is known of a pointer: that of a param, which the caller gives, or of the scratch
  // memory behind them.
  void add_argument(unsigned a) {
    const bool given = a < used_.size();
    const int64_t aligned = given ? argument_alignment_ : kBaseAlignment;
    llvm::AttrBuilder attributes(context_.module.getContext());
    attributes.addAlignmentAttr(static_cast<uint64_t>(aligned));
    if (!shares_memory(a)) attributes.addAttribute(llvm::Attribute::NoAlias);
    if (given) {
      const ir::Buffer* buffer = program_.params[used_[a]].buffer.get();
      const int64_t bytes = buffer->bytes();
      if (bytes > 0) attributes.addDereferenceableAttr(static_cast<uint64_t>(bytes));
      const bool read_only = !usage_.written.contains(buffer);
      if (read_only) attributes.addAttribute(llvm::Attribute::ReadOnly);
      add_buffer(buffer, context_.function->getArg(a), read_only && !shares_memory(a), aligned);
    }
    context_.function->addParamAttrs(a, attributes);
  }

  // Buffers with known values, whose memory is made when an index is not constant.
  void add_known_buffers() {
    for (const ir::Buffer* buffer : usage_.read) {
      if (!buffer->values.empty() && !parts_.memory.has_buffer(buffer))
        add_buffer(buffer, nullptr, true, kBaseAlignment);
    }
  }

  void add_buffer(const ir::Buffer* buffer, llvm::Value* base, bool read_only, int64_t alignment) {
    BufferInfo info;
    info.base = base;
    info.alignment = alignment;
    info.strides = dense_strides(buffer->shape, buffer->shape.empty() ? 1 : buffer->shape.back());
    info.read_only = read_only;
    parts_.memory.add_buffer(buffer, std::move(info));
  }

  void emit_body() {
    llvm::BasicBlock* entry = new_block("entry");
    llvm::BasicBlock* start = new_block("start");
    llvm::BasicBlock* done = new_block("done");
    builder_.SetInsertPoint(entry);
    parts_.memory.begin_function(context_.function->getArg(static_cast<unsigned>(used_.size())),
                                 builder_.CreateBr(start));
    parts_.indices.begin_function(entry);
    builder_.SetInsertPoint(start);
    llvm::Value* const first = context_.function->getArg(context_.function->arg_size() - 2);
    llvm::Value* const last = context_.function->getArg(context_.function->arg_size() - 1);
    if (root_.kind == StmtKind::kFor && root_.for_kind == ForKind::kParallel &&
        ir::is_const_int(root_.extent)) {
      Indices& indices = parts_.indices;
      indices.begin_loop(first, last, true, {0, root_.extent->int_value - 1});
      space_.bind(root_.var.get(), add(indices.loop_index(), indices.index(root_.min)));
      parts_.statements.emit_all(root_.body);
      indices.end_loop(last);
      builder_.CreateBr(done);
    } else {
      llvm::BasicBlock* work = new_block("work");
      llvm::Value* runs = builder_.CreateAnd(builder_.CreateICmpEQ(first, i64(0)),
                                             builder_.CreateICmpSGT(last, i64(0)));
      builder_.CreateCondBr(runs, work, done);
      builder_.SetInsertPoint(work);
      parts_.statements.emit(root_);
      builder_.CreateBr(done);
    }
    builder_.SetInsertPoint(done);
    builder_.CreateRetVoid();
  }

  Parts& parts_;
  const ir::Program& program_;
  const std::span<const ir::InPlacePair> in_place_;
  const int64_t argument_alignment_;
  const StmtNode& root_;
  Usage usage_;
  std::vector<size_t> used_;  // numbers of the params that the phase touches
};

}  // namespace

Result<EmittedPhase> emit_phase(llvm::Module& module, const ir::Program& program,
                                std::span<const ir::InPlacePair> in_place,
                                const target::Cpu& target, const EmitLimits& limits,
                                const ir::Phase& phase, const std::string& symbol) {
  Parts parts(module, target, limits.max_statements);
  PhaseEmitter(parts, program, in_place, limits.argument_alignment, phase).emit(symbol);
  HONE_RETURN_IF_ERROR(std::move(parts.context.status));
  return EmittedPhase{parts.memory.scratch_bytes(), parts.context.loops};
}

}  // namespace hone::backend::cpu
