#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "hone/backend/cpu/emit_object.h"
#include "hone/backend/cpu/emitter.h"

namespace hone::backend::cpu {
namespace {

using ir::Op;
using ir::StmtNode;
using target::LoopKind;
using target::LoopPlan;

// The form of a number that the divisor divides.
IndexForm quotient(IndexForm form, int64_t divisor) {
  form.constant /= divisor;
  for (auto& [atom, coefficient] : form.terms) coefficient /= divisor;
  return form;
}

}  // namespace

llvm::Value* PhaseEmitter::tail_mask() {
  if (lanes_.active == lanes_.width) return nullptr;
  std::vector<llvm::Constant*> bits;
  for (int i = 0; i < lanes_.width; ++i) bits.push_back(builder_.getInt1(i < lanes_.active));
  return llvm::ConstantVector::get(bits);
}

llvm::Value* PhaseEmitter::all_lanes_mask() {
  llvm::Value* tail = tail_mask();
  if (!lanes_.mask) return tail;
  return tail ? builder_.CreateAnd(lanes_.mask, tail) : lanes_.mask;
}

llvm::Value* PhaseEmitter::any_lane() {
  return lanes_.mask ? builder_.CreateOrReduce(all_lanes_mask()) : nullptr;
}

void PhaseEmitter::emit_vectorized(const StmtNode& s) {
  LaneUse use = find_lane_use(s);
  if (!use.facts.vectorizable || lanes_.width > 1) return emit_serial(s);
  const bool is_known = ir::is_const_int(s.extent);
  const IndexForm extent = index(s.extent);
  const IndexForm min = is_known ? index(s.min) : IndexForm();
  if (failed() || (is_known && extent.constant <= 0)) return;
  if (is_known) {
    use.facts.extent = extent.constant;
  } else {
    use.facts.divisor = std::abs(extent.constant);
    for (const auto& [atom, coefficient] : extent.terms)
      use.facts.divisor = std::gcd(use.facts.divisor, coefficient);
  }
  use.facts.vectorizable =
      extent.lane == 0 && (!use.facts.scans || (is_known && find_scan_places(s, use.scan)));
  if (failed()) return;
  const LoopPlan plan = target::plan_loop(use.facts, target_);
  if (plan.kind == LoopKind::kSerial) return emit_serial(s);
  filter_ = plan.kind == LoopKind::kFilter ? s.body[0].get() : nullptr;
  if (plan.kind == LoopKind::kScan) begin_scans(plan.lanes);
  begin_partials(use, plan);
  int64_t done = 0;
  if (!is_known) {
    emit_vector_loop(s, quotient(extent, plan.step * plan.lanes), true, plan);
  } else {
    const int64_t whole = extent.constant / plan.lanes, tail = extent.constant % plan.lanes;
    if (plan.step > 0) {
      emit_vector_loop(s, {.constant = whole / plan.step}, false, plan);
      done = whole / plan.step * plan.step;
    }
    for (; done * plan.lanes < extent.constant && !failed(); ++done) {
      IndexForm at = min;
      at.constant += done * plan.lanes;
      partial_slot_ = static_cast<int>(done % plan.chains);
      emit_chunk(s, at, done < whole ? plan.lanes : tail, plan.lanes);
    }
  }
  end_partials(use);
  if (plan.kind == LoopKind::kScan) end_scans();
}

// Emits a loop of `count` iterations, each of which takes as many whole vectors as the plan says.
void PhaseEmitter::emit_vector_loop(const StmtNode& s, const IndexForm& count, bool may_be_empty,
                                    const LoopPlan& plan) {
  const IndexForm min = index(s.min);
  for (const ir::Expr& e : invariant_functions(s)) hoisted_[e.get()] = value(e);
  llvm::Value* end = uniform_value(count);
  begin_loop(i64(0), end, may_be_empty, {0, std::max<int64_t>(0, space_.range(count).hi - 1)});
  const IndexForm first = add(min, loop_index(), plan.step * plan.lanes);
  for (partial_slot_ = 0; partial_slot_ < plan.step; ++partial_slot_) {
    IndexForm at = first;
    at.constant += partial_slot_ * plan.lanes;
    emit_chunk(s, at, plan.lanes, plan.lanes);
  }
  end_loop(end);
  hoisted_.clear();
}

void PhaseEmitter::emit_chunk(const StmtNode& s, const IndexForm& first, int64_t active,
                              int native) {
  const Lanes outer = lanes_;
  const int outer_copies = alloc_copies_;
  IndexForm at = first;
  if (active > 1) {
    at.lane = 1;
    lanes_.active = static_cast<int>(active);
    lanes_.width = target::vector_width(active, native);
    alloc_copies_ = lanes_.width;
    space_.set_lanes(lanes_.active);
    loops_.width = std::max(loops_.width, lanes_.width);
  }
  space_.bind(s.var.get(), at);
  begin_scan_chunk();
  emit_all(s.body);
  lanes_ = outer;
  alloc_copies_ = outer_copies;
  space_.set_lanes(1);
}

// The number of a loop's step as 32 bits in each lane, counted there: to be chosen by a mask a
// number in a scalar register would be broadcast for each vector.
llvm::Value* PhaseEmitter::count_in_lanes(const ir::ExprNode& e) {
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

llvm::Value* PhaseEmitter::identity(Op op, DType type) {
  llvm::Type* of = type_of(type);
  if (is_float(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double v = op == Op::kAdd   ? 0.0
                     : op == Op::kMul ? 1.0
                     : op == Op::kMin ? infinity
                                      : -infinity;
    return llvm::ConstantFP::get(of, v);
  }
  const unsigned bits = of->getIntegerBitWidth();
  const bool no_sign =
      type == DType::kU8 || type == DType::kU16 || type == DType::kU32 || type == DType::kU64;
  if (op == Op::kMin) {
    return llvm::ConstantInt::get(
        of, no_sign ? llvm::APInt::getMaxValue(bits) : llvm::APInt::getSignedMaxValue(bits));
  }
  if (op == Op::kMax) {
    return llvm::ConstantInt::get(
        of, no_sign ? llvm::APInt::getMinValue(bits) : llvm::APInt::getSignedMinValue(bits));
  }
  return llvm::ConstantInt::get(of, op == Op::kMul ? 1 : 0);
}

// Halves until one lane is left.
llvm::Value* PhaseEmitter::reduce_lanes(llvm::Value* vector, Op op, DType type) {
  auto width =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  for (; width > 1; width /= 2) {
    std::vector<int> low(static_cast<size_t>(width / 2));
    std::iota(low.begin(), low.end(), 0);
    std::vector<int> high = low;
    for (int& i : high) i += width / 2;
    llvm::Value* a = builder_.CreateShuffleVector(vector, low);
    llvm::Value* b = builder_.CreateShuffleVector(vector, high);
    vector = is_float(type) ? float_binary(op, a, b, type) : int_binary(op, a, b, type);
  }
  return builder_.CreateExtractElement(vector, uint64_t{0});
}

void PhaseEmitter::begin_partials(const LaneUse& use, const LoopPlan& plan) {
  const int native = plan.lanes;
  for (const StmtNode* s : use.partials) {
    Partial partial;
    partial.op = *reduction_op(*s);
    partial.width = native;
    const DType type = s->buffer->dtype;
    for (int64_t i = 0; i < plan.chains; ++i) {
      llvm::Value* slot = entry_alloca(type_of(type), native);
      llvm::Value* start =
          builder_.CreateVectorSplat(static_cast<unsigned>(native), identity(partial.op, type));
      builder_.CreateStore(start, slot);
      partial.slots.push_back(slot);
    }
    partials_[s] = std::move(partial);
  }
}

void PhaseEmitter::end_partials(const LaneUse& use) {
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
      if (!total) {
        total = part;
      } else {
        total = is_float(type) ? float_binary(partial.op, total, part, type)
                               : int_binary(partial.op, total, part, type);
      }
    }
    total = reduce_lanes(total, partial.op, type);
    const Access target = access(s->buffer, s->indices);
    llvm::Value* old = load(target);
    store(target, is_float(type) ? float_binary(partial.op, old, total, type)
                                 : int_binary(partial.op, old, total, type));
  }
}

// x = x op e(lane): each lane starts from the operator's identity (or its partial result).
void PhaseEmitter::emit_reduction(const StmtNode& s, const Access& access, Op op) {
  const DType type = s.buffer->dtype;
  llvm::Type* lanes_type = with_lanes(type_of(type));
  const auto it = partials_.find(&s);
  llvm::Value* slot = nullptr;
  llvm::Value* all = nullptr;
  llvm::Value* start = splat(identity(op, type));
  int width = lanes_.width;
  if (it != partials_.end()) {
    slot = it->second.slots[static_cast<size_t>(partial_slot_)];
    width = it->second.width;
    all = builder_.CreateLoad(
        llvm::FixedVectorType::get(type_of(type), static_cast<unsigned>(width)), slot);
    start = all;
    if (width > lanes_.width) {
      std::vector<int> low(static_cast<size_t>(lanes_.width));
      std::iota(low.begin(), low.end(), 0);
      start = builder_.CreateShuffleVector(all, low);
    }
  }
  reduced_ = &s;
  reduced_value_ = start;
  llvm::Value* result = splat(value(s.value));
  reduced_ = nullptr;
  if (failed()) return;
  HONE_ASSERT(result->getType() == lanes_type, "a reduction changed its type");
  if (llvm::Value* mask = all_lanes_mask()) result = builder_.CreateSelect(mask, result, start);
  if (!slot) {
    llvm::Value* total = reduce_lanes(result, op, type);
    llvm::Value* old = load(access);
    return store(access, is_float(type) ? float_binary(op, old, total, type)
                                        : int_binary(op, old, total, type));
  }
  if (width > lanes_.width) {
    std::vector<int> widen(static_cast<size_t>(width), -1);
    std::vector<int> merge(static_cast<size_t>(width));
    for (int i = 0; i < lanes_.width; ++i) widen[static_cast<size_t>(i)] = i;
    for (int i = 0; i < width; ++i)
      merge[static_cast<size_t>(i)] = i < lanes_.width ? width + i : i;
    result = builder_.CreateShuffleVector(all, builder_.CreateShuffleVector(result, widen), merge);
  }
  builder_.CreateStore(result, slot);
}

}  // namespace hone::backend::cpu
