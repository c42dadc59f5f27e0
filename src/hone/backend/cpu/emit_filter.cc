#include "hone/backend/cpu/emit_filter.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "hone/backend/cpu/emit_object.h"

namespace hone::backend::cpu {
namespace {

constexpr unsigned kWords = 8;  // words of 32 bits in a register of AVX2

// For every set of lanes of `words` words each, one bit a lane: the words of those in the set, then
// any others.
llvm::Constant* packing_table(llvm::LLVMContext& context, unsigned words) {
  const unsigned lanes = kWords / words;
  std::vector<uint8_t> table;
  for (unsigned set = 0; set < 1U << lanes; ++set) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      for (unsigned word = 0; word < words && (set >> lane & 1U); ++word)
        table.push_back(static_cast<uint8_t>(lane * words + word));
    }
    table.resize(size_t{kWords} * (set + 1));
  }
  return llvm::ConstantDataArray::get(context, table);
}

llvm::Value* as_bits(llvm::IRBuilder<>& builder, llvm::Value* lanes, unsigned width) {
  return builder.CreateBitCast(lanes, builder.getIntNTy(width));
}

}  // namespace

llvm::Value* Filters::pack_lanes(llvm::Value* all, llvm::Value* passes) {
  if (has_avx2_at_most(target_)) return pack_by_table(all, passes);
  return builder_.CreateIntrinsic(llvm::Intrinsic::experimental_vector_compress, {all->getType()},
                                  {all, passes, llvm::PoisonValue::get(all->getType())});
}

// AVX2 has no instruction that packs: the bits of the lanes that pass say in a table how to permute
// the register's words.
llvm::Value* Filters::pack_by_table(llvm::Value* all, llvm::Value* passes) {
  llvm::Type* type = all->getType();
  const unsigned words = type->getScalarSizeInBits() / 32;
  const auto width = static_cast<unsigned>(lanes_.width);
  llvm::Value* table = named_constant("hone_pack_" + std::to_string(words),
                                      [&] { return packing_table(builder_.getContext(), words); });
  llvm::Value* set = builder_.CreateZExt(as_bits(builder_, passes, width), builder_.getInt64Ty());
  llvm::Value* entry =
      builder_.CreateGEP(llvm::ArrayType::get(builder_.getInt8Ty(), kWords), table, {set});
  llvm::Value* order = builder_.CreateZExt(
      builder_.CreateAlignedLoad(llvm::FixedVectorType::get(builder_.getInt8Ty(), kWords), entry,
                                 llvm::Align(kWords)),
      llvm::FixedVectorType::get(builder_.getInt32Ty(), kWords));
  // Half a register of lanes is the lower half of a whole one.
  llvm::Value* whole = part_of(all, 0, lanes_.width, static_cast<int>(kWords / words));
  llvm::Value* packed =
      builder_.CreateBitCast(whole, llvm::FixedVectorType::get(builder_.getInt32Ty(), kWords));
  packed = builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permd, {}, {packed, order});
  packed = builder_.CreateBitCast(
      packed, llvm::FixedVectorType::get(type->getScalarType(), kWords / words));
  return part_of(packed, 0, lanes_.width);
}

// if c { B[n] = e  n = n + 1 } in lanes: the values of the lanes that pass, packed, are stored as a
// whole vector. Its rest falls into what the next ones overwrite or into the padding that every
// allocated buffer has behind its last element (Memory::allocate).
void Filters::emit(const ir::StmtNode& s) {
  context_.statements += static_cast<int64_t>(s.body.size());
  llvm::Value* passes = splat(values_.value(s.condition));
  if (failed()) return;
  const Lanes outer = lanes_;
  lanes_.mask = both(outer.mask, passes);
  passes = all_lanes_mask();
  std::vector<llvm::Value*> packed;
  for (size_t i = 0; i + 1 < s.body.size(); ++i) {
    llvm::Value* all = indices_.count_in_lanes(*s.body[i]->value);
    if (!all) all = values_.value(s.body[i]->value);
    all = conversions_.to_memory(splat(all), s.body[i]->buffer->dtype);
    if (failed()) return;
    packed.push_back(pack_lanes(all, passes));
  }
  lanes_ = outer;
  for (size_t i = 0; i < packed.size() && !failed(); ++i) {
    const Access to = memory_.access(s.body[i]->buffer, s.body[i]->indices);
    builder_.CreateAlignedStore(packed[i], memory_.address(to), memory_.alignment(to, false));
  }
  const Access counter = memory_.access(s.body.back()->buffer, {});
  if (failed()) return;
  llvm::Value* bits = as_bits(builder_, passes, static_cast<unsigned>(lanes_.width));
  llvm::Value* many = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
  memory_.store(counter, builder_.CreateAdd(memory_.load(counter),
                                            builder_.CreateZExt(many, builder_.getInt64Ty())));
}

}  // namespace hone::backend::cpu
