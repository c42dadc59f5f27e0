#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <numeric>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emitter.h"
#include "hone/ir/linear.h"
#include "hone/ir/visit.h"

namespace hone::backend::cpu {

using ir::StmtNode;

namespace {

// Stores of a scan (ir/scan_loop.h) at an element that all lanes share.
std::vector<const StmtNode*> updates_in(const StmtNode& loop) {
  std::vector<const StmtNode*> found;
  const auto moves = [&](const ir::Expr& index) { return ir::uses(index, loop.var.get()); };
  ir::for_each_stmt(loop, [&](const StmtNode& s) {
    if (s.kind == ir::StmtKind::kStore && std::none_of(s.indices.begin(), s.indices.end(), moves))
      found.push_back(&s);
  });
  return found;
}

}  // namespace

// The elements that the loop carries, each in a vector whose lanes are all the same.
bool PhaseEmitter::begin_scans(const StmtNode& loop, int native) {
  const std::vector<const StmtNode*> updates = updates_in(loop);
  for (const StmtNode* update : updates) scan_updates_[update->buffer.get()] = update;
  const bool known = begin_scans_of(loop.body, native);
  if (!known) end_scans(false);
  return known;
}

bool PhaseEmitter::begin_scans_of(const std::vector<ir::Stmt>& body, int native) {
  return std::all_of(body.begin(), body.end(), [&](const ir::Stmt& s) {
    if (s->kind == ir::StmtKind::kFor) {
      for (int64_t i = 0; i < s->extent->int_value; ++i) {
        space_.bind(s->var.get(), {.constant = s->min->int_value + i});
        if (!begin_scans_of(s->body, native)) return false;
      }
      return true;
    }
    const auto update = scan_updates_.find(s->buffer.get());
    if (s->kind != ir::StmtKind::kStore || update == scan_updates_.end())
      return begin_scans_of(s->body, native);
    const Access at = access(s->buffer, s->indices);
    if (failed() || !at.form.is_constant()) return false;
    const DType type = s->buffer->dtype;
    llvm::Value* slot = entry_alloca(type_of(type), native);
    const auto lanes = static_cast<unsigned>(native);
    builder_.CreateStore(builder_.CreateVectorSplat(lanes, load(at)), slot);
    // A shift by lanes is one instruction, if it does not become another one for known lanes.
    llvm::Value* neutral =
        opaque(builder_.CreateVectorSplat(lanes, identity(*ir::reduction_op(*s), type)));
    llvm::Value* last = nullptr;
    if (has_avx512(target_) && native * dtype_bytes(type) == 64) {
      llvm::Type* word = builder_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type)));
      last = opaque(builder_.CreateVectorSplat(lanes, integer(word, native - 1)));
    }
    scans_.insert_or_assign({s->buffer.get(), at.form.constant},
                            Scan{at, slot, native, neutral, last});
    return true;
  });
}

llvm::Value* PhaseEmitter::opaque(llvm::Value* vector) {
  llvm::Value*& hidden = opaque_[vector];
  if (!hidden) {
    llvm::Value* memory = entry_alloca(vector->getType(), 1);
    builder_.CreateStore(vector, memory);
    hidden = builder_.CreateLoad(vector->getType(), memory, true);
  }
  return hidden;
}

void PhaseEmitter::end_scans(bool keep) {
  for (const auto& [place, scan] : scans_) {
    if (!keep || failed()) break;
    llvm::Value* last = builder_.CreateLoad(
        llvm::FixedVectorType::get(type_of(scan.at.of->dtype), static_cast<unsigned>(scan.native)),
        scan.slot);
    store(scan.at, builder_.CreateExtractElement(last, uint64_t{0}));
  }
  scans_.clear();
  scan_updates_.clear();
  opaque_.clear();
}

void PhaseEmitter::begin_scan_chunk() {
  for (auto& [place, scan] : scans_) {
    scan.before = scan.after = nullptr;
    scan.updated = false;
  }
}

PhaseEmitter::Scan* PhaseEmitter::find_scan(const Access& access) {
  if (scans_.empty() || !access.form.is_constant()) return nullptr;
  const auto it = scans_.find({access.of, access.form.constant});
  return it == scans_.end() ? nullptr : &it->second;
}

// Each lane takes that of the number that it has in `from`, of 512 bits.
llvm::Value* PhaseEmitter::permuted(llvm::Value* lanes, llvm::Value* from) {
  const bool words = from->getType()->getScalarSizeInBits() == 32;
  llvm::Value* made =
      builder_.CreateIntrinsic(words ? llvm::Intrinsic::x86_avx512_permvar_si_512
                                     : llvm::Intrinsic::x86_avx512_permvar_di_512,
                               {}, {builder_.CreateBitCast(lanes, from->getType()), from});
  return builder_.CreateBitCast(made, lanes->getType());
}

// Sums of the lanes up to each one, by doubling their number; those of the vectors before are added
// last, and wait for nothing but each other.
void PhaseEmitter::emit_scan_step(const StmtNode& update, Scan& scan) {
  if (scan.after || failed()) return;
  const ir::Op op = *ir::reduction_op(update);
  const DType type = update.buffer->dtype;
  const auto join = [&](llvm::Value* a, llvm::Value* b) {
    return is_float(type) ? float_binary(op, a, b, type) : int_binary(op, a, b, type);
  };
  llvm::Value* neutral = splat(identity(op, type));
  reduced_ = &update;
  reduced_value_ = neutral;
  llvm::Value* sums = splat(value(update.value));
  reduced_ = nullptr;
  if (failed()) return;
  const int width = lanes_.width;
  const bool whole = lanes_.active == scan.native;
  const auto shifted = [&](llvm::Value* lanes, int by) {
    std::vector<int> from(static_cast<size_t>(width));
    std::iota(from.begin(), from.end(), width - by);
    return builder_.CreateShuffleVector(whole ? scan.neutral : neutral, lanes, from);
  };
  for (int by = 1; by < width; by *= 2) sums = join(shifted(sums, by), sums);
  const auto all = static_cast<size_t>(scan.native);
  llvm::Type* carried = llvm::FixedVectorType::get(type_of(type), static_cast<unsigned>(all));
  llvm::Value* before = builder_.CreateLoad(carried, scan.slot);
  llvm::Value *total = sums, *start = before;
  if (width == 1) {
    total = builder_.CreateVectorSplat(static_cast<unsigned>(all), sums);
    start = builder_.CreateExtractElement(before, uint64_t{0});
  } else {
    total = whole && scan.last
                ? permuted(sums, scan.last)
                : builder_.CreateShuffleVector(sums, std::vector<int>(all, lanes_.active - 1));
    std::vector<int> low(static_cast<size_t>(width));
    std::iota(low.begin(), low.end(), 0);
    if (width < scan.native) start = builder_.CreateShuffleVector(before, low);
  }
  builder_.CreateStore(join(before, total), scan.slot);
  scan.after = join(start, sums);
  scan.before = width == 1 ? start : join(start, shifted(sums, 1));
}

// Emits the steps of the scans whose elements a store reads, ahead of the store. Returns false if
// the store itself is no such step.
bool PhaseEmitter::emit_scanned(const StmtNode& s) {
  const auto step = [&](const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices) {
    const auto update = scan_updates_.find(buffer.get());
    if (update == scan_updates_.end()) return static_cast<Scan*>(nullptr);
    Scan* scan = find_scan(access(buffer, indices));
    HONE_ASSERT(scan || failed(), "a step of a scan has an unknown place");
    if (scan) emit_scan_step(*update->second, *scan);
    return scan;
  };
  if (scan_updates_.contains(s.buffer.get())) {
    if (Scan* scan = step(s.buffer, s.indices)) scan->updated = true;
    return true;
  }
  ir::visit(s.value, [&](const ir::Expr& e) {
    if (e->op == ir::Op::kLoad) step(e->buffer, e->args);
  });
  return false;
}

}  // namespace hone::backend::cpu
