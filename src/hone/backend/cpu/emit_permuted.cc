#include "hone/backend/cpu/emit_permuted.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "hone/backend/cpu/emit_object.h"
#include "hone/ir/scalar.h"
#include "hone/target/loop_plan.h"

namespace hone::backend::cpu {
namespace {

constexpr int64_t kMostVectors512 = 2, kMostVectors256 = 4;

llvm::Intrinsic::ID of_two(const llvm::Type* element) {
  if (element->isFloatTy()) return llvm::Intrinsic::x86_avx512_vpermi2var_ps_512;
  if (element->isDoubleTy()) return llvm::Intrinsic::x86_avx512_vpermi2var_pd_512;
  return element->isIntegerTy(32) ? llvm::Intrinsic::x86_avx512_vpermi2var_d_512
                                  : llvm::Intrinsic::x86_avx512_vpermi2var_q_512;
}

// Returns the intrinsic that permutes one register.
llvm::Intrinsic::ID of_one(const llvm::Type* element, bool is512) {
  const bool is_float = element->isFloatTy();
  if (is512)
    return is_float ? llvm::Intrinsic::x86_avx512_permvar_sf_512
                    : llvm::Intrinsic::x86_avx512_permvar_si_512;
  return is_float ? llvm::Intrinsic::x86_avx2_permps : llvm::Intrinsic::x86_avx2_permd;
}

}  // namespace

llvm::Value* PermutedLoads::load(const Access& access) {
  llvm::Value* permuted = of_row(access);
  return permuted ? permuted : of_vector(access);
}

// Elements that all lie in one vector of memory, which begins at a multiple of its length, as where
// each half of the lanes reads one element of its own: a load, which others of such elements share,
// and a permutation.
llvm::Value* PermutedLoads::of_vector(const Access& access) {
  const BufferInfo& buffer = *access.buffer;
  const int64_t native = target_.vector_bytes / 4;
  const bool is512 = has_avx512(target_);
  if (lanes_.mask || lanes_.guard) return nullptr;
  Access first = access;
  IndexForm place;
  place.lane = access.form.lane;
  place.constant = ir::floor_mod(access.form.constant, native);
  first.form.lane = 0;
  first.form.constant -= place.constant;
  std::erase_if(first.form.terms, [&](const auto& term) {
    if (!space_.atom(term.first).varying && term.second % native == 0) return false;
    place.terms.push_back(term);
    return true;
  });
  const Range range = space_.range(place);
  const target::LaneRead read{static_cast<int>(access.bytes), lanes_.width, buffer.local,
                              access.of->num_elements(),      range.lo,     range.hi};
  if (!target::is_permuted(read, target_)) return nullptr;
  ++context_.loops.permuted_loads;
  llvm::Value* at =
      builder_.CreateTrunc(indices_.form_value(place), with_lanes(builder_.getInt32Ty()));
  at = part_of(at, 0, lanes_.width, static_cast<int>(native));
  llvm::Type* whole = llvm::FixedVectorType::get(access.type, static_cast<unsigned>(native));
  llvm::Value* vector = memory_.note(
      builder_.CreateAlignedLoad(whole, memory_.address(first), memory_.alignment(first, true)),
      access);
  llvm::Value* found = builder_.CreateIntrinsic(of_one(access.type, is512), {}, {vector, at});
  return part_of(found, 0, lanes_.width);
}

// Elements of a row on the stack by numbers that memory holds: permutations of the row's registers
// instead of a load for each lane. The numbers lie inside the row, as in any load that runs.
llvm::Value* PermutedLoads::of_row(const Access& access) {
  const BufferInfo& buffer = *access.buffer;
  const int64_t native = target_.vector_bytes / access.bytes;
  const int64_t vectors = (access.of->num_elements() + native - 1) / native;
  const bool is512 = has_avx512(target_);
  const bool is256 = has_avx2_at_most(target_);
  const bool fits = is512   ? vectors <= kMostVectors512 && (access.bytes == 4 || access.bytes == 8)
                    : is256 ? vectors <= kMostVectors256 && access.bytes == 4
                            : false;
  if (!fits || !buffer.local || buffer.lane_copies > 1 || buffer.padded_row != 0 ||
      space_.is_strided(access.form) || lanes_.width > native)
    return nullptr;
  // The numbers as a whole register of integers as wide as the elements.
  llvm::Type* number = builder_.getIntNTy(static_cast<unsigned>(access.bytes) * 8);
  llvm::Value* at = builder_.CreateTrunc(indices_.form_value(access.form), with_lanes(number));
  at = part_of(at, 0, lanes_.width, static_cast<int>(native));
  llvm::Type* whole = llvm::FixedVectorType::get(access.type, static_cast<unsigned>(native));
  const auto part = [&](int64_t i) {
    return builder_.CreateAlignedLoad(whole, advance(buffer.base, i * target_.vector_bytes),
                                      llvm::Align(static_cast<uint64_t>(target_.vector_bytes)));
  };
  llvm::Value* found = nullptr;
  if (is512) {
    llvm::Value* first = part(0);
    found = builder_.CreateIntrinsic(of_two(access.type), {},
                                     {first, at, vectors > 1 ? part(1) : first});
  }
  for (int64_t i = 0; i < vectors && !is512; ++i) {
    llvm::Value* here = builder_.CreateIntrinsic(of_one(access.type, false), {}, {part(i), at});
    if (!found) {
      found = here;
      continue;
    }
    llvm::Value* behind = builder_.CreateICmpUGE(
        at, llvm::ConstantInt::get(at->getType(), static_cast<uint64_t>(i * native)));
    found = builder_.CreateSelect(behind, here, found);
  }
  return part_of(found, 0, lanes_.width);
}

}  // namespace hone::backend::cpu
