#include "hone/backend/cpu/emit_scan.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <numeric>

#include "hone/backend/cpu/emit_object.h"
#include "hone/ir/visit.h"

namespace hone::backend::cpu {
using ir::StmtNode;

bool Scans::find_places(const StmtNode& loop, const ir::Scan& scan) {
  for (const StmtNode* update : scan.updates) updates_[update->buffer.get()] = update;
  places_.clear();
  const bool known = find_places_in(loop.body);
  if (!known) updates_.clear();
  return known;
}

bool Scans::find_places_in(const std::vector<ir::Stmt>& body) {
  return std::all_of(body.begin(), body.end(), [&](const ir::Stmt& s) {
    if (s->kind == ir::StmtKind::kFor) {
      for (int64_t i = 0; i < s->extent->int_value; ++i) {
        space_.bind(s->var.get(), {.constant = s->min->int_value + i});
        if (!find_places_in(s->body)) return false;
      }
      return true;
    }
    if (s->kind != ir::StmtKind::kStore || !updates_.contains(s->buffer.get()))
      return find_places_in(s->body);
    places_.push_back(memory_.access(s->buffer, s->indices));
    return !failed() && places_.back().form.is_constant();
  });
}

void Scans::begin(int native) {
  for (const Access& at : places_) {
    const DType type = at.of->dtype;
    llvm::Value* slot = entry_alloca(type_of(type), native);
    const auto lanes = static_cast<unsigned>(native);
    builder_.CreateStore(builder_.CreateVectorSplat(lanes, memory_.load(at)), slot);
    // A shift by lanes is one instruction, if it does not become another one for known lanes.
    const ir::Op op = *ir::reduction_op(*updates_.at(at.of));
    llvm::Value* neutral = opaque(builder_.CreateVectorSplat(lanes, operators_.identity(op, type)));
    llvm::Value* last = nullptr;
    if (has_avx512(target_) && native * dtype_bytes(type) == 64) {
      llvm::Type* word = builder_.getIntNTy(static_cast<unsigned>(8 * dtype_bytes(type)));
      last = opaque(builder_.CreateVectorSplat(lanes, integer(word, native - 1)));
    }
    carried_.insert_or_assign({at.of, at.form.constant}, Carried{at, slot, native, neutral, last});
  }
}

llvm::Value* Scans::opaque(llvm::Value* vector) {
  llvm::Value*& hidden = opaque_[vector];
  if (!hidden) {
    llvm::Value* memory = entry_alloca(vector->getType(), 1);
    builder_.CreateStore(vector, memory);
    hidden = builder_.CreateLoad(vector->getType(), memory, true);
  }
  return hidden;
}

void Scans::end() {
  for (const auto& [place, scan] : carried_) {
    if (failed()) break;
    llvm::Value* last = builder_.CreateLoad(
        llvm::FixedVectorType::get(type_of(scan.at.of->dtype), static_cast<unsigned>(scan.native)),
        scan.slot);
    memory_.store(scan.at, builder_.CreateExtractElement(last, uint64_t{0}));
  }
  carried_.clear();
  updates_.clear();
  opaque_.clear();
}

void Scans::begin_chunk() {
  for (auto& [place, scan] : carried_) {
    scan.before = scan.after = nullptr;
    scan.updated = false;
  }
}

// Each lane takes that of the number that it has in `from`, of 512 bits.
llvm::Value* Scans::permuted(llvm::Value* lanes, llvm::Value* from) {
  const bool words = from->getType()->getScalarSizeInBits() == 32;
  llvm::Value* made =
      builder_.CreateIntrinsic(words ? llvm::Intrinsic::x86_avx512_permvar_si_512
                                     : llvm::Intrinsic::x86_avx512_permvar_di_512,
                               {}, {builder_.CreateBitCast(lanes, from->getType()), from});
  return builder_.CreateBitCast(made, lanes->getType());
}

// Sums of the lanes up to each one, by doubling their number; those of the vectors before are added
// last, and wait for nothing but each other.
void Scans::emit_step(const StmtNode& update, Carried& scan) {
  if (scan.after || failed()) return;
  const ir::Op op = *ir::reduction_op(update);
  const DType type = update.buffer->dtype;
  const auto join = [&](llvm::Value* a, llvm::Value* b) {
    return operators_.binary(op, a, b, type);
  };
  llvm::Value* neutral = splat(operators_.identity(op, type));
  llvm::Value* sums = splat(values_.updated(update, neutral));
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
    if (width < scan.native) start = part_of(before, 0, width);
  }
  builder_.CreateStore(join(before, total), scan.slot);
  scan.after = join(start, sums);
  scan.before = width == 1 ? start : join(start, shifted(sums, 1));
}

// Emits the step of the scan that carries the element; returns null if none does.
Scans::Carried* Scans::step(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices) {
  const auto update = updates_.find(buffer.get());
  if (update == updates_.end()) return nullptr;
  const Access at = memory_.access(buffer, indices);
  const auto it = carried_.find({at.of, at.form.constant});
  const bool known = at.form.is_constant() && it != carried_.end();
  HONE_ASSERT(known || failed(), "a step of a scan has an unknown place");
  if (!known) return nullptr;
  emit_step(*update->second, it->second);
  return &it->second;
}

bool Scans::emit(const StmtNode& s) {
  if (carried_.empty()) return false;
  if (updates_.contains(s.buffer.get())) {
    if (Carried* scan = step(s.buffer, s.indices)) scan->updated = true;
    return true;
  }
  ir::visit(s.value, [&](const ir::Expr& e) {
    if (e->op == ir::Op::kLoad) step(e->buffer, e->args);
  });
  return false;
}

llvm::Value* Scans::value_of(const Access& access) const {
  if (carried_.empty() || !access.form.is_constant()) return nullptr;
  const auto it = carried_.find({access.of, access.form.constant});
  if (it == carried_.end()) return nullptr;
  return it->second.updated ? it->second.after : it->second.before;
}

}  // namespace hone::backend::cpu
