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

// Finds the elements that the loop carries. Returns false if one has no place that is known here.
bool PhaseEmitter::find_scan_places(const StmtNode& loop, const ir::Scan& scan) {
  for (const StmtNode* update : scan.updates) scan_updates_[update->buffer.get()] = update;
  scan_places_.clear();
  const bool known = find_scan_places_in(loop.body);
  if (!known) scan_updates_.clear();
  return known;
}

bool PhaseEmitter::find_scan_places_in(const std::vector<ir::Stmt>& body) {
  return std::all_of(body.begin(), body.end(), [&](const ir::Stmt& s) {
    if (s->kind == ir::StmtKind::kFor) {
      for (int64_t i = 0; i < s->extent->int_value; ++i) {
        space_.bind(s->var.get(), {.constant = s->min->int_value + i});
        if (!find_scan_places_in(s->body)) return false;
      }
      return true;
    }
    if (s->kind != ir::StmtKind::kStore || !scan_updates_.contains(s->buffer.get()))
      return find_scan_places_in(s->body);
    scan_places_.push_back(access(s->buffer, s->indices));
    return !failed() && scan_places_.back().form.is_constant();
  });
}

// Loads each of the elements into a vector whose lanes are all the same.
void PhaseEmitter::begin_scans(int native) {
  for (const Access& at : scan_places_) {
    const DType type = at.of->dtype;
    llvm::Value* slot = entry_alloca(type_of(type), native);
    const auto lanes = static_cast<unsigned>(native);
    builder_.CreateStore(builder_.CreateVectorSplat(lanes, load(at)), slot);
    // A shift by lanes is one instruction, if it does not become another one for known lanes.
    const ir::Op op = *ir::reduction_op(*scan_updates_.at(at.of));
    llvm::Value* neutral = opaque(builder_.CreateVectorSplat(lanes, identity(op, type)));
    llvm::Value* last = nullptr;
    if (has_avx512(target_) && native * dtype_bytes(type) == 64) {
      llvm::Type* word = builder_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type)));
      last = opaque(builder_.CreateVectorSplat(lanes, integer(word, native - 1)));
    }
    scans_.insert_or_assign({at.of, at.form.constant}, Scan{at, slot, native, neutral, last});
  }
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

void PhaseEmitter::end_scans() {
  for (const auto& [place, scan] : scans_) {
    if (failed()) break;
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
