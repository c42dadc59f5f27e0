#include "hone/backend/cpu/emit_lanes.h"

#include <algorithm>
#include <numeric>

#include "hone/backend/cpu/statements.h"

namespace hone::backend::cpu {
namespace {

using ir::StmtNode;
using target::LoopKind;
using target::LoopPlan;

// The form of a number that the divisor divides.
IndexForm quotient(IndexForm form, int64_t divisor) {
  form.constant /= divisor;
  for (auto& [atom, coefficient] : form.terms) coefficient /= divisor;
  return form;
}

// How a reduction's store joins parts.
Combining combining(const StmtNode& s) {
  return {*reduction_op(s), ir::is_nan_or_extreme(s.value)};
}

}  // namespace

bool VectorLoops::emit(const StmtNode& s) {
  LaneUse use = find_lane_use(s);
  if (!use.facts.vectorizable || lanes_.width > 1) return false;
  const bool is_known = ir::is_const_int(s.extent);
  const IndexForm extent = indices_.index(s.extent);
  const IndexForm min = is_known ? indices_.index(s.min) : IndexForm();
  if (failed() || (is_known && extent.constant <= 0)) return true;
  if (is_known) {
    use.facts.extent = extent.constant;
  } else {
    use.facts.divisor = std::abs(extent.constant);
    for (const auto& [atom, coefficient] : extent.terms)
      use.facts.divisor = std::gcd(use.facts.divisor, coefficient);
  }
  use.facts.vectorizable =
      extent.lane == 0 && (!use.facts.scans || (is_known && scans_.find_places(s, use.scan)));
  if (failed()) return true;
  const LoopPlan plan = target::plan_loop(use.facts, target_);
  if (plan.kind == LoopKind::kSerial) return false;
  if (plan.kind == LoopKind::kScan) scans_.begin(plan.lanes);
  begin_partials(use, plan);
  if (is_known) {
    emit_chunks(s, *use.facts.extent, min, plan);
  } else {
    emit_loop(s, quotient(extent, plan.step * plan.lanes), true, plan);
  }
  end_partials(use);
  if (plan.kind == LoopKind::kScan) scans_.end();
  return true;
}

void VectorLoops::emit_chunks(const StmtNode& s, int64_t extent, const IndexForm& min,
                              const LoopPlan& plan) {
  const int64_t whole = extent / plan.lanes, tail = extent % plan.lanes;
  int64_t done = 0;
  if (plan.step > 0) {
    emit_loop(s, {.constant = whole / plan.step}, false, plan);
    done = whole / plan.step * plan.step;
  }
  for (; done * plan.lanes < extent && !failed(); ++done) {
    IndexForm at = min;
    at.constant += done * plan.lanes;
    partial_slot_ = done % plan.chains;
    emit_chunk(s, at, done < whole ? plan.lanes : tail, plan);
  }
}

void VectorLoops::emit_loop(const StmtNode& s, const IndexForm& count, bool may_be_empty,
                            const LoopPlan& plan) {
  const IndexForm min = indices_.index(s.min);
  values_.hoist(invariant_functions(s));
  llvm::Value* end = indices_.uniform_value(count);
  indices_.begin_loop(i64(0), end, may_be_empty,
                      {0, std::max<int64_t>(0, space_.range(count).hi - 1)});
  const IndexForm first = add(min, indices_.loop_index(), plan.step * plan.lanes);
  for (partial_slot_ = 0; partial_slot_ < plan.step; ++partial_slot_) {
    IndexForm at = first;
    at.constant += partial_slot_ * plan.lanes;
    emit_chunk(s, at, plan.lanes, plan);
  }
  indices_.end_loop(end);
  values_.end_hoisting();
}

void VectorLoops::emit_chunk(const StmtNode& s, const IndexForm& first, int64_t active,
                             const LoopPlan& plan) {
  const Lanes outer = lanes_;
  IndexForm at = first;
  if (active > 1) {
    at.lane = 1;
    lanes_.active = static_cast<int>(active);
    lanes_.width = target::vector_width(active, plan.lanes);
    space_.set_lanes(lanes_.active);
    context_.loops.width = std::max(context_.loops.width, lanes_.width);
  }
  space_.bind(s.var.get(), at);
  scans_.begin_chunk();
  if (plan.kind == LoopKind::kFilter && lanes_.width > 1) {
    filters_.emit(*s.body[0]);
  } else {
    statements_.emit_copies(s.body, lanes_.width);
  }
  lanes_ = outer;
  space_.set_lanes(1);
}

void VectorLoops::begin_partials(const LaneUse& use, const LoopPlan& plan) {
  const int native = plan.lanes;
  for (const StmtNode* s : use.partials) {
    Partial partial;
    partial.by = combining(*s);
    partial.width = native;
    const DType type = s->buffer->dtype;
    for (int64_t i = 0; i < plan.chains; ++i) {
      llvm::Value* slot = entry_alloca(type_of(type), native);
      llvm::Value* start = builder_.CreateVectorSplat(static_cast<unsigned>(native),
                                                      operators_.identity(partial.by.op, type));
      builder_.CreateStore(start, slot);
      partial.slots.push_back(slot);
    }
    partials_[s] = std::move(partial);
  }
}

void VectorLoops::end_partials(const LaneUse& use) {
  for (const StmtNode* s : use.partials) {
    if (failed()) return;
    const auto it = partials_.find(s);
    const Partial partial = std::move(it->second);
    partials_.erase(it);
    const DType type = s->buffer->dtype;
    llvm::Type* vector_type =
        llvm::FixedVectorType::get(type_of(type), static_cast<unsigned>(partial.width));
    llvm::Value* total = nullptr;
    for (llvm::Value* slot : partial.slots) {
      llvm::Value* part = builder_.CreateLoad(vector_type, slot);
      total = total ? operators_.combined(partial.by, total, part, type) : part;
    }
    total = operators_.reduce_lanes(total, partial.by, type);
    const Access target = memory_.access(s->buffer, s->indices);
    llvm::Value* old = memory_.load(target);
    memory_.store(target, operators_.combined(partial.by, old, total, type));
  }
}

// x = x op e(lane): each lane starts from the operator's identity (or its partial result).
void VectorLoops::emit_reduction(const StmtNode& s, const Access& access) {
  const Combining by = combining(s);
  const DType type = s.buffer->dtype;
  llvm::Type* lanes_type = with_lanes(type_of(type));
  const auto it = partials_.find(&s);
  llvm::Value* slot = nullptr;
  llvm::Value* all = nullptr;
  llvm::Value* start = splat(operators_.identity(by.op, type));
  int width = lanes_.width;
  if (it != partials_.end()) {
    slot = it->second.slots[static_cast<size_t>(partial_slot_)];
    width = it->second.width;
    all = builder_.CreateLoad(
        llvm::FixedVectorType::get(type_of(type), static_cast<unsigned>(width)), slot);
    start = all;
    if (width > lanes_.width) start = part_of(all, 0, lanes_.width);
  }
  llvm::Value* result = splat(values_.updated(s, start));
  if (failed()) return;
  HONE_ASSERT(result->getType() == lanes_type, "a reduction changed its type");
  if (llvm::Value* mask = all_lanes_mask()) result = builder_.CreateSelect(mask, result, start);
  if (!slot) {
    llvm::Value* total = operators_.reduce_lanes(result, by, type);
    llvm::Value* old = memory_.load(access);
    return memory_.store(access, operators_.combined(by, old, total, type));
  }
  if (width > lanes_.width) result = with_part(all, result, 0);
  builder_.CreateStore(result, slot);
}

}  // namespace hone::backend::cpu
