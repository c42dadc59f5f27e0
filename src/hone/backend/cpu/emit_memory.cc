#include "hone/backend/cpu/emit_memory.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "hone/backend/cpu/emit_permuted.h"
#include "hone/base/round_up.h"
#include "hone/ir/scalar.h"
#include "hone/tensor/half.h"

namespace hone::backend::cpu {
namespace {

constexpr int64_t kSafeBytes = 512;         // >= a vector of the widest loads: 64 lanes of 8 bytes
constexpr int64_t kStackLimit = 64 * 1024;  // larger kStack buffers go to scratch memory

}  // namespace

std::vector<int64_t> dense_strides(const std::vector<int64_t>& shape, int64_t row) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = d == shape.size() - 1 ? row : strides[d] * shape[d];
  }
  return strides;
}

void Memory::begin_function(llvm::Value* scratch, llvm::Instruction* entry_end) {
  scratch_ = scratch;
  entry_end_ = entry_end;
}

void Memory::add_buffer(const ir::Buffer* buffer, BufferInfo info) {
  info.id = num_buffers_++;
  buffers_[buffer] = std::move(info);
}

bool Memory::has_buffer(const ir::Buffer* buffer) const { return buffers_.contains(buffer); }

llvm::Value* Memory::base_of(const ir::Buffer* buffer) const {
  const auto it = buffers_.find(buffer);
  HONE_ASSERT(it != buffers_.end(), "an extern statement names an unknown buffer");
  return it->second.base;
}

bool Memory::is_read_only(const ir::Buffer* buffer) const {
  const auto it = buffers_.find(buffer);
  return it != buffers_.end() && it->second.read_only && it->second.base != nullptr;
}

// A buffer allocated inside a vectorized loop is private to the iteration: it gets one copy per
// lane, side by side.
int64_t Memory::allocate(const ir::Buffer& buffer, int64_t copies) {
  const int64_t element = dtype_bytes(buffer.dtype);
  BufferInfo info;
  info.lane_copies = static_cast<int>(copies);
  const std::vector<int64_t>& shape = buffer.shape;
  int64_t row = shape.empty() ? 1 : shape.back();
  const int64_t native = std::max<int64_t>(target_.vector_bytes / element, 1);
  const int64_t padding = native;  // behind the last row: a tail reads whole vectors
  if (buffer.scope == ir::Scope::kRegister && copies == 1) {
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
  const bool scratch = buffer.scope == ir::Scope::kThread || count * element > kStackLimit;
  const int64_t outer_top = scratch_top_;
  if (scratch) {
    const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
    builder_.SetInsertPoint(entry_end_);
    info.base = advance(scratch_, scratch_top_);
    scratch_top_ += round_up(count * element, kBaseAlignment);
    scratch_high_ = std::max(scratch_high_, scratch_top_);
  } else {
    info.base = entry_alloca(conversions_.memory_type(buffer.dtype), count);
    info.local = true;
  }
  add_buffer(&buffer, std::move(info));
  return outer_top;
}
void Memory::release(const ir::Buffer& buffer, int64_t outer_top) {
  scratch_top_ = outer_top;
  buffers_.erase(&buffer);
}

Access Memory::access(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices) {
  const auto it = buffers_.find(buffer.get());
  if (it == buffers_.end()) {
    fail(invalid("buffer {} is neither a param nor allocated where it is used", buffer->name));
    static const BufferInfo kNone;
    return {&kNone,
            buffer.get(),
            {},
            conversions_.memory_type(buffer->dtype),
            dtype_bytes(buffer->dtype)};
  }
  const BufferInfo& info = it->second;
  IndexForm form;
  for (size_t d = 0; d < indices.size(); ++d)
    form = add(form, indices_.index(indices[d]), info.strides[d]);
  if (lanes_.width > 1) form = space_.with_joined_digits(std::move(form));
  if (info.lane_copies > 1) {
    form = scaled(form, info.lane_copies);
    form.lane += 1;
  }
  return {&info, buffer.get(), std::move(form), conversions_.memory_type(buffer->dtype),
          dtype_bytes(buffer->dtype)};
}

llvm::Value* Memory::address(const Access& access) {
  return indices_.address(access.buffer->base, access.buffer->id, access.form, access.bytes);
}

llvm::Align Memory::alignment(const Access& access, bool vector) const {
  int64_t step = std::gcd(access.buffer->alignment, access.form.constant * access.bytes);
  for (const auto& [atom, coefficient] : access.form.terms)
    step = std::gcd(step, coefficient * access.bytes);
  if (!vector && access.form.lane != 0) step = std::gcd(step, access.form.lane * access.bytes);
  return llvm::Align(static_cast<uint64_t>(step));
}

// Where the condition does not hold, memory that may be read: as many of the value that is wanted
// then.
llvm::Value* Memory::safe(llvm::Value* pointer, llvm::Value* condition, const Access& access) {
  if (!condition || access.buffer->local) return pointer;
  const auto bits = std::bit_cast<uint32_t>(lanes_.otherwise);
  const std::string name = bits == 0 ? "hone_zeros" : fmt::format("hone_fill_{:x}", bits);
  llvm::Value* fill = named_constant(name, [&] {
    const std::vector<uint32_t> all(kSafeBytes / sizeof(uint32_t), bits);
    return llvm::ConstantDataArray::get(context_.module.getContext(),
                                        llvm::ArrayRef<uint32_t>(all));
  });
  return builder_.CreateSelect(condition, pointer, fill);
}

llvm::Instruction* Memory::note(llvm::Instruction* memory_access, const Access& access) {
  if (access.buffer->read_only && llvm::isa<llvm::LoadInst>(memory_access)) {
    memory_access->setMetadata(llvm::LLVMContext::MD_invariant_load,
                               llvm::MDNode::get(context_.module.getContext(), {}));
  }
  return memory_access;
}

llvm::Constant* Memory::known_constant(const Access& access, double v) {
  const DType type = access.of->dtype;
  if (!is_float(type)) return integer(access.type, ir::float_to_int(type, v));
  if (type == DType::kF16 && !context_.converts_half)
    return llvm::ConstantInt::get(access.type, double_to_f16(v));
  if (type != DType::kBF16) return llvm::ConstantFP::get(access.type, v);
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  return llvm::ConstantInt::get(access.type, (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

llvm::Value* Memory::known_value(const Access& access) {
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
    auto* table =
        new llvm::GlobalVariable(context_.module, type, true, llvm::GlobalValue::PrivateLinkage,
                                 llvm::ConstantArray::get(type, elements), "table");
    table->setAlignment(llvm::Align(kBaseAlignment));
    buffers_[access.of].base = table;
  }
  return nullptr;
}

// Returns whether each lane lies one element before the previous lane, and all lanes may be
// accessed.
bool Memory::is_reversed(const Access& access) const {
  return access.form.lane == -1 && space_.is_strided(access.form) && !lanes_.mask &&
         !access.buffer->local;
}

// The same elements from the last lane's on.
Access Memory::ascending(const Access& access) {
  Access other = access;
  other.form.constant -= lanes_.active - 1;
  other.form.lane = 1;
  return other;
}

llvm::Value* Memory::reversed(llvm::Value* lanes) {
  std::vector<int> from(static_cast<size_t>(lanes_.width), -1);
  for (int i = 0; i < lanes_.active; ++i) from[static_cast<size_t>(i)] = lanes_.active - 1 - i;
  return builder_.CreateShuffleVector(lanes, from);
}

llvm::Value* Memory::load(const Access& access) {
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
             : access.form.lane == 1 && space_.is_strided(access.form) ? load_vector(access)
                                                                       : load_gather(access);
  }
  return conversions_.from_memory(loaded, access.of->dtype);
}

// Lanes that are masked off may be read where all of them do. That is faster than a masked load,
// which takes a hundred times as long where no lane is read of memory that was never touched.
bool Memory::is_inside(const Access& access) const {
  int64_t last = access.buffer->lane_copies - 1;
  const std::vector<int64_t>& shape = access.of->shape;
  for (size_t d = 0; d < shape.size(); ++d)
    last += (shape[d] - 1) * access.buffer->strides[d] * access.buffer->lane_copies;
  const Range range = space_.range(access.form);
  return range.lo >= 0 && range.hi <= last;
}

llvm::Value* Memory::load_vector(const Access& access) {
  llvm::Type* type = with_lanes(access.type);
  const llvm::Align align = alignment(access, true);
  llvm::Value* pointer = safe(address(access), lanes_.guard, access);
  const bool whole = lanes_.active == lanes_.width;
  if (access.buffer->local || (whole && (!lanes_.mask || is_inside(access)))) {
    return note(builder_.CreateAlignedLoad(type, pointer, align), access);
  }
  if (lanes_.mask || target_.masked_memory) {
    return builder_.CreateMaskedLoad(type, pointer, align, all_lanes_mask(),
                                     llvm::Constant::getNullValue(type));
  }
  return load_pieces(access, pointer, align);
}

// A tail without masks: pieces of 2^i lanes.
llvm::Value* Memory::load_pieces(const Access& access, llvm::Value* pointer, llvm::Align align) {
  llvm::Value* out = llvm::Constant::getNullValue(with_lanes(access.type));
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
      out = with_part(out, some, at);
    }
    at += piece;
  }
  return out;
}

// The address of each lane, one by one.
std::vector<llvm::Value*> Memory::lane_pointers(const Access& access) {
  std::vector<llvm::Value*> out;
  if (space_.is_strided(access.form)) {
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
llvm::Value* Memory::lane_addresses(const Access& access) {
  Access uniform = access;
  IndexForm offset;
  offset.lane = access.form.lane;
  uniform.form.lane = 0;
  std::erase_if(uniform.form.terms, [&](const auto& term) {
    if (!space_.atom(term.first).varying) return false;
    offset.terms.push_back(term);
    return true;
  });
  llvm::Value* bytes = indices_.form_value(scaled(offset, access.bytes));
  return builder_.CreateGEP(builder_.getInt8Ty(), address(uniform), bytes);
}

llvm::Value* Memory::load_gather(const Access& access) {
  if (llvm::Value* permuted = PermutedLoads(context_, indices_, *this).load(access))
    return permuted;
  llvm::Type* type = with_lanes(access.type);
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

void Memory::store(const Access& access, llvm::Value* value) {
  if (failed()) return;
  value = conversions_.to_memory(value, access.of->dtype);
  if (!space_.varying(access.form)) return store_uniform(access, value);
  value = splat(value);
  if (is_reversed(access)) return store_vector(ascending(access), reversed(value));
  return access.form.lane == 1 && space_.is_strided(access.form) ? store_vector(access, value)
                                                                 : store_scatter(access, value);
}

void Memory::store_uniform(const Access& access, llvm::Value* value) {
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

bool Memory::ends_row(const Access& access) const {
  if (access.buffer->lane_copies > 1) return true;
  if (access.buffer->padded_row == 0 || !access.form.terms.empty()) return false;
  const int64_t row = access.of->shape.empty() ? 1 : access.of->shape.back();
  return access.form.constant % access.buffer->padded_row + lanes_.active == row;
}

void Memory::store_vector(const Access& access, llvm::Value* value) {
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
  store_pieces(access, value, pointer, align);
}

void Memory::store_pieces(const Access& access, llvm::Value* value, llvm::Value* pointer,
                          llvm::Align align) {
  for (int at = 0; at < lanes_.active;) {
    const int piece = static_cast<int>(std::bit_floor(static_cast<unsigned>(lanes_.active - at)));
    llvm::Value* to = advance(pointer, at * access.bytes);
    llvm::Value* some = piece == 1 ? builder_.CreateExtractElement(value, static_cast<uint64_t>(at))
                                   : part_of(value, at, piece);
    builder_.CreateAlignedStore(
        some, to, llvm::commonAlignment(align, static_cast<uint64_t>(at * access.bytes)));
    at += piece;
  }
}

void Memory::store_scatter(const Access& access, llvm::Value* value) {
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

void Memory::prefetch(const ir::StmtNode& s) {
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
