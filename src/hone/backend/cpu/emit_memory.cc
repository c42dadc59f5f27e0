#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "hone/backend/cpu/emitter.h"
#include "hone/backend/cpu/signs_of_zeros.h"
#include "hone/ir/loads.h"
#include "hone/ir/scalar.h"
#include "hone/tensor/half.h"

namespace hone::backend::cpu {
namespace {

using ir::Op;
using ir::StmtNode;

constexpr int64_t kBaseAlignment = 64;
constexpr int64_t kSafeBytes = 512;  // >= a vector of the widest loads: 64 lanes of 8 bytes

}  // namespace

PhaseEmitter::Access PhaseEmitter::access(const ir::BufferPtr& buffer,
                                          const std::vector<ir::Expr>& indices) {
  const auto it = buffers_.find(buffer.get());
  if (it == buffers_.end()) {
    fail(invalid("buffer {} is neither a param nor allocated where it is used", buffer->name));
    static const BufferInfo kNone;
    return {&kNone, buffer.get(), {}, memory_type(buffer->dtype), dtype_bytes(buffer->dtype)};
  }
  const BufferInfo& info = it->second;
  IndexForm form;
  for (size_t d = 0; d < indices.size(); ++d) form = add(form, index(indices[d]), info.strides[d]);
  if (lanes_.width > 1) form = space_.with_joined_digits(std::move(form));
  if (info.lane_copies > 1) {
    form = scaled(form, info.lane_copies);
    form.lane += 1;
  }
  return {&info, buffer.get(), std::move(form), memory_type(buffer->dtype),
          dtype_bytes(buffer->dtype)};
}

llvm::Value* PhaseEmitter::advance(llvm::Value* pointer, int64_t bytes) {
  if (bytes == 0) return pointer;
  return builder_.CreateConstGEP1_64(builder_.getInt8Ty(), pointer, static_cast<uint64_t>(bytes));
}

// base + terms, term by term from the outermost scope inwards. The pointer after the terms of one
// scope is computed in that scope's header and shared by all accesses that begin alike; the term of
// a loop's own variable becomes a pointer that the loop advances.
llvm::Value* PhaseEmitter::address(const Access& access) {
  std::vector<std::pair<int, int64_t>> terms = access.form.terms;
  std::vector<std::pair<int, int64_t>> in_place;
  std::erase_if(terms, [&](const auto& term) {
    const Atom& atom = space_.atom(term.first);
    if (atom.in_place && !atom.varying) in_place.push_back(term);
    return atom.in_place;
  });
  std::stable_sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
    return space_.atom(a.first).depth < space_.atom(b.first).depth;
  });
  llvm::Value* pointer = access.buffer->base;
  std::vector<int64_t> key = {access.buffer->id};
  for (const auto& [atom, coefficient] : terms) {
    key.push_back(atom);
    key.push_back(coefficient);
    Scope& scope = scopes_[static_cast<size_t>(space_.atom(atom).depth)];
    llvm::Value*& known = scope.known[key];
    if (!known) {
      const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
      const int64_t bytes = coefficient * access.bytes;
      if (atom == scope.atom) {
        builder_.SetInsertPoint(scope.preheader->getTerminator());
        llvm::Value* first = builder_.CreateGEP(builder_.getInt8Ty(), pointer,
                                                builder_.CreateMul(scope.min, i64(bytes)));
        builder_.SetInsertPoint(scope.header, scope.header->begin());
        llvm::PHINode* moving = builder_.CreatePHI(builder_.getPtrTy(), 2);
        moving->addIncoming(first, scope.preheader);
        scope.pointers.emplace_back(moving, bytes);
        known = moving;
      } else {
        llvm::Value* factor = atom_value(atom);
        builder_.SetInsertPoint(scope.header->getTerminator());
        known = builder_.CreateGEP(builder_.getInt8Ty(), pointer,
                                   builder_.CreateMul(factor, i64(bytes)));
      }
    }
    pointer = known;
  }
  for (const auto& [atom, coefficient] : in_place) {
    pointer =
        builder_.CreateGEP(builder_.getInt8Ty(), pointer,
                           builder_.CreateMul(atom_value(atom), i64(coefficient * access.bytes)));
  }
  return advance(pointer, access.form.constant * access.bytes);
}

llvm::Align PhaseEmitter::alignment(const Access& access, bool vector) const {
  int64_t step = std::gcd(access.buffer->alignment, access.form.constant * access.bytes);
  for (const auto& [atom, coefficient] : access.form.terms)
    step = std::gcd(step, coefficient * access.bytes);
  if (!vector && access.form.lane != 0) step = std::gcd(step, access.form.lane * access.bytes);
  return llvm::Align(static_cast<uint64_t>(step));
}

llvm::Value* PhaseEmitter::named_constant(const std::string& name,
                                          llvm::function_ref<llvm::Constant*()> make) {
  if (llvm::GlobalVariable* known = module_.getGlobalVariable(name, true)) return known;
  llvm::Constant* values = make();
  auto* made = new llvm::GlobalVariable(module_, values->getType(), true,
                                        llvm::GlobalValue::InternalLinkage, values, name);
  made->setAlignment(llvm::Align(kBaseAlignment));
  return made;
}

// Where the condition does not hold, memory that may be read: as many of the value that is wanted
// then.
llvm::Value* PhaseEmitter::safe(llvm::Value* pointer, llvm::Value* condition,
                                const Access& access) {
  if (!condition || access.buffer->local) return pointer;
  const auto bits = std::bit_cast<uint32_t>(lanes_.otherwise);
  const std::string name = bits == 0 ? "hone_zeros" : fmt::format("hone_fill_{:x}", bits);
  llvm::Value* fill = named_constant(name, [&] {
    const std::vector<uint32_t> all(kSafeBytes / sizeof(uint32_t), bits);
    return llvm::ConstantDataArray::get(module_.getContext(), llvm::ArrayRef<uint32_t>(all));
  });
  return builder_.CreateSelect(condition, pointer, fill);
}

llvm::Instruction* PhaseEmitter::note(llvm::Instruction* memory_access, const Access& access) {
  if (access.buffer->read_only && llvm::isa<llvm::LoadInst>(memory_access)) {
    memory_access->setMetadata(llvm::LLVMContext::MD_invariant_load,
                               llvm::MDNode::get(module_.getContext(), {}));
  }
  return memory_access;
}

llvm::Constant* PhaseEmitter::known_constant(const Access& access, double v) {
  const DType type = access.of->dtype;
  if (!is_float(type)) return integer(access.type, ir::float_to_int(type, v));
  if (type == DType::kF16 && !converts_half_)
    return llvm::ConstantInt::get(access.type, double_to_f16(v));
  if (type != DType::kBF16) return llvm::ConstantFP::get(access.type, v);
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  return llvm::ConstantInt::get(access.type, (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

llvm::Value* PhaseEmitter::known_value(const Access& access) {
  const ir::Buffer& buffer = *access.of;
  if (buffer.values.empty()) return nullptr;
  if (access.form.is_constant()) {
    const int64_t i = access.form.constant;
    if (i < 0 || i >= static_cast<int64_t>(buffer.values.size())) return nullptr;
    return known_constant(access, static_cast<double>(buffer.values[static_cast<size_t>(i)]));
  }
  if (!access.buffer->base) {
    std::vector<llvm::Constant*> elements;
    for (const float v : buffer.values)
      elements.push_back(known_constant(access, static_cast<double>(v)));
    auto* type = llvm::ArrayType::get(access.type, elements.size());
    auto* table = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                           llvm::ConstantArray::get(type, elements), "table");
    table->setAlignment(llvm::Align(kBaseAlignment));
    buffers_[access.of].base = table;
  }
  return nullptr;
}

// The lane only adds a multiple of its number.
bool PhaseEmitter::is_strided(const IndexForm& form) const {
  return std::none_of(form.terms.begin(), form.terms.end(),
                      [&](const auto& term) { return space_.atom(term.first).varying; });
}

// Returns whether each lane lies one element before the previous lane, and all lanes may be
// accessed.
bool PhaseEmitter::is_reversed(const Access& access) const {
  return access.form.lane == -1 && is_strided(access.form) && !lanes_.mask && !access.buffer->local;
}

// The same elements from the last lane's on.
PhaseEmitter::Access PhaseEmitter::ascending(const Access& access) {
  Access other = access;
  other.form.constant -= lanes_.active - 1;
  other.form.lane = 1;
  return other;
}

llvm::Value* PhaseEmitter::reversed(llvm::Value* lanes) {
  std::vector<int> from(static_cast<size_t>(lanes_.width), -1);
  for (int i = 0; i < lanes_.active; ++i) from[static_cast<size_t>(i)] = lanes_.active - 1 - i;
  return builder_.CreateShuffleVector(lanes, from);
}

llvm::Value* PhaseEmitter::load(const Access& access) {
  if (failed()) return llvm::PoisonValue::get(type_of(access.of->dtype));
  llvm::Value* loaded = known_value(access);
  if (loaded) {
    // A constant.
  } else if (!space_.varying(access.form)) {
    llvm::Value* allowed = any_lane();
    if (lanes_.guard) allowed = allowed ? builder_.CreateAnd(allowed, lanes_.guard) : lanes_.guard;
    llvm::Value* pointer = safe(address(access), allowed, access);
    loaded =
        note(builder_.CreateAlignedLoad(access.type, pointer, alignment(access, false)), access);
  } else {
    loaded = is_reversed(access) ? reversed(load_vector(ascending(access)))
             : access.form.lane == 1 && is_strided(access.form) ? load_vector(access)
                                                                : load_gather(access);
  }
  return from_memory(loaded, access.of->dtype);
}

llvm::Value* PhaseEmitter::load_vector(const Access& access) {
  llvm::Type* type = llvm::FixedVectorType::get(access.type, static_cast<unsigned>(lanes_.width));
  const llvm::Align align = alignment(access, true);
  llvm::Value* pointer = safe(address(access), lanes_.guard, access);
  const bool whole = lanes_.active == lanes_.width;
  if (access.buffer->local || (whole && !lanes_.mask)) {
    return note(builder_.CreateAlignedLoad(type, pointer, align), access);
  }
  if (lanes_.mask || target_.masked_memory) {
    return builder_.CreateMaskedLoad(type, pointer, align, all_lanes_mask(),
                                     llvm::Constant::getNullValue(type));
  }
  // A tail without masks: pieces of 2^i lanes.
  llvm::Value* out = llvm::Constant::getNullValue(type);
  for (int at = 0; at < lanes_.active;) {
    const int piece = static_cast<int>(std::bit_floor(static_cast<unsigned>(lanes_.active - at)));
    llvm::Value* from = advance(pointer, at * access.bytes);
    const llvm::Align piece_align =
        llvm::commonAlignment(align, static_cast<uint64_t>(at * access.bytes));
    if (piece == 1) {
      llvm::Value* one = note(builder_.CreateAlignedLoad(access.type, from, piece_align), access);
      out = builder_.CreateInsertElement(out, one, static_cast<uint64_t>(at));
    } else {
      llvm::Type* piece_type =
          llvm::FixedVectorType::get(access.type, static_cast<unsigned>(piece));
      llvm::Value* some = note(builder_.CreateAlignedLoad(piece_type, from, piece_align), access);
      std::vector<int> widen(static_cast<size_t>(lanes_.width), -1);
      std::vector<int> merge(static_cast<size_t>(lanes_.width));
      for (int i = 0; i < piece; ++i) widen[static_cast<size_t>(i)] = i;
      for (int i = 0; i < lanes_.width; ++i) {
        merge[static_cast<size_t>(i)] = i >= at && i < at + piece ? lanes_.width + i - at : i;
      }
      out = builder_.CreateShuffleVector(out, builder_.CreateShuffleVector(some, widen), merge);
    }
    at += piece;
  }
  return out;
}

// The address of each lane, one by one.
std::vector<llvm::Value*> PhaseEmitter::lane_pointers(const Access& access) {
  std::vector<llvm::Value*> out;
  if (is_strided(access.form)) {
    llvm::Value* first = address(access);
    for (int i = 0; i < lanes_.active; ++i)
      out.push_back(advance(first, i * access.form.lane * access.bytes));
    return out;
  }
  llvm::Value* pointers = lane_addresses(access);
  for (int i = 0; i < lanes_.active; ++i) {
    out.push_back(builder_.CreateExtractElement(pointers, static_cast<uint64_t>(i)));
  }
  return out;
}

// Returns the lanes' pointers as one vector.
llvm::Value* PhaseEmitter::lane_addresses(const Access& access) {
  Access uniform = access;
  IndexForm offset;
  offset.lane = access.form.lane;
  uniform.form.lane = 0;
  std::erase_if(uniform.form.terms, [&](const auto& term) {
    if (!space_.atom(term.first).varying) return false;
    offset.terms.push_back(term);
    return true;
  });
  llvm::Value* bytes = form_value(scaled(offset, access.bytes));
  return builder_.CreateGEP(builder_.getInt8Ty(), address(uniform), bytes);
}

llvm::Value* PhaseEmitter::load_gather(const Access& access) {
  if (llvm::Value* permuted = load_permuted(access)) return permuted;
  if (llvm::Value* permuted = load_of_vector(access)) return permuted;
  llvm::Type* type = llvm::FixedVectorType::get(access.type, static_cast<unsigned>(lanes_.width));
  const llvm::Align align = alignment(access, false);
  llvm::Value* mask = all_lanes_mask();
  if (lanes_.guard && !access.buffer->local) {
    llvm::Value* guard = splat(lanes_.guard);
    mask = mask ? builder_.CreateAnd(mask, guard) : guard;
  }
  if ((mask && !llvm::isa<llvm::Constant>(mask)) || (target_.masked_memory && access.bytes >= 4)) {
    if (!mask) mask = llvm::Constant::getAllOnesValue(with_lanes(builder_.getInt1Ty()));
    return builder_.CreateMaskedGather(type, lane_addresses(access), align, mask,
                                       llvm::Constant::getNullValue(type));
  }
  llvm::Value* out = llvm::Constant::getNullValue(type);
  const std::vector<llvm::Value*> pointers = lane_pointers(access);
  for (size_t i = 0; i < pointers.size(); ++i) {
    llvm::Value* one = note(builder_.CreateAlignedLoad(access.type, pointers[i], align), access);
    out = builder_.CreateInsertElement(out, one, i);
  }
  return out;
}

void PhaseEmitter::store(const Access& access, llvm::Value* value) {
  if (failed()) return;
  value = to_memory(value, access.of->dtype);
  if (!space_.varying(access.form)) return store_uniform(access, value);
  value = splat(value);
  if (is_reversed(access)) return store_vector(ascending(access), reversed(value));
  return access.form.lane == 1 && is_strided(access.form) ? store_vector(access, value)
                                                          : store_scatter(access, value);
}

void PhaseEmitter::store_uniform(const Access& access, llvm::Value* value) {
  // All lanes write one element: the last lane's value stays.
  if (value->getType()->isVectorTy()) {
    if (lanes_.mask)
      return fail(error(Code::kUnsupported, "lanes write one element of {} under a condition",
                        access.of->name));
    value = builder_.CreateExtractElement(value, static_cast<uint64_t>(lanes_.active - 1));
  }
  llvm::Value* any = any_lane();
  llvm::BasicBlock* after = nullptr;
  if (any) {
    llvm::BasicBlock* write = new_block("write");
    after = new_block("after");
    builder_.CreateCondBr(any, write, after);
    builder_.SetInsertPoint(write);
  }
  builder_.CreateAlignedStore(value, address(access), alignment(access, false));
  if (after) {
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }
}

bool PhaseEmitter::ends_row(const Access& access) const {
  if (access.buffer->lane_copies > 1) return true;
  if (access.buffer->padded_row == 0 || !access.form.terms.empty()) return false;
  const int64_t row = access.of->shape.empty() ? 1 : access.of->shape.back();
  return access.form.constant % access.buffer->padded_row + lanes_.active == row;
}

void PhaseEmitter::store_vector(const Access& access, llvm::Value* value) {
  const llvm::Align align = alignment(access, true);
  llvm::Value* pointer = address(access);
  const bool whole = lanes_.active == lanes_.width;
  if (access.buffer->local) {
    // The lanes that a tail has too many may be written if they fall into the row's padding.
    llvm::Value* mask = whole || ends_row(access) ? lanes_.mask : all_lanes_mask();
    if (mask) {
      llvm::Value* old = builder_.CreateAlignedLoad(value->getType(), pointer, align);
      value = builder_.CreateSelect(mask, value, old);
    }
    builder_.CreateAlignedStore(value, pointer, align);
    return;
  }
  if (whole && !lanes_.mask) {
    builder_.CreateAlignedStore(value, pointer, align);
    return;
  }
  if (lanes_.mask || target_.masked_memory) {
    builder_.CreateMaskedStore(value, pointer, align, all_lanes_mask());
    return;
  }
  for (int at = 0; at < lanes_.active;) {
    const int piece = static_cast<int>(std::bit_floor(static_cast<unsigned>(lanes_.active - at)));
    llvm::Value* to = advance(pointer, at * access.bytes);
    llvm::Value* some = nullptr;
    if (piece == 1) {
      some = builder_.CreateExtractElement(value, static_cast<uint64_t>(at));
    } else {
      std::vector<int> take(static_cast<size_t>(piece));
      std::iota(take.begin(), take.end(), at);
      some = builder_.CreateShuffleVector(value, take);
    }
    builder_.CreateAlignedStore(
        some, to, llvm::commonAlignment(align, static_cast<uint64_t>(at * access.bytes)));
    at += piece;
  }
}

void PhaseEmitter::store_scatter(const Access& access, llvm::Value* value) {
  const llvm::Align align = alignment(access, false);
  llvm::Value* mask = all_lanes_mask();
  if ((mask && !llvm::isa<llvm::Constant>(mask)) || (target_.masked_memory && access.bytes >= 4)) {
    if (!mask) mask = llvm::Constant::getAllOnesValue(with_lanes(builder_.getInt1Ty()));
    builder_.CreateMaskedScatter(value, lane_addresses(access), align, mask);
    return;
  }
  const std::vector<llvm::Value*> pointers = lane_pointers(access);
  for (size_t i = 0; i < pointers.size(); ++i) {
    builder_.CreateAlignedStore(builder_.CreateExtractElement(value, i), pointers[i], align);
  }
}

namespace {

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

void PhaseEmitter::emit_store(const StmtNode& s) {
  if (++statements_ > limits_.max_statements) {
    return fail(error(Code::kUnsupported, "more than {} statements after unrolling",
                      limits_.max_statements));
  }
  const SignsOfZeros exact(builder_, !is_sum_of_products(s));
  if (&s == accumulated_) {
    reduced_ = &s;
    reduced_value_ = builder_.CreateLoad(type_of(s.buffer->dtype), accumulator_);
    llvm::Value* sum = value(s.value);
    reduced_ = nullptr;
    if (!failed()) builder_.CreateStore(sum, accumulator_);
    return;
  }
  if (!scans_.empty() && emit_scanned(s)) return;
  const Access target = access(s.buffer, s.indices);
  if (failed()) return;
  if (lanes_.width > 1 && !space_.varying(target.form)) {
    if (const std::optional<Op> op = ir::is_const_int(s.value) ? std::nullopt : reduction_op(s)) {
      return emit_reduction(s, target, *op);
    }
  }
  store(target, value(s.value));
}

void PhaseEmitter::emit_prefetch(const StmtNode& s) {
  if (s.buffer->scope == ir::Scope::kRegister) return;
  Access target = access(s.buffer, s.indices);
  if (failed() || !target.buffer->base) return;  // no base: known values, not in memory
  target.form.lane = 0;
  std::erase_if(target.form.terms, [&](const auto& t) { return space_.atom(t.first).varying; });
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                           {address(target), builder_.getInt32(0),
                            builder_.getInt32(s.cache == 2 ? 2 : 3), builder_.getInt32(1)});
}

}  // namespace hone::backend::cpu
