#include <llvm/IR/Intrinsics.h>

#include "hone/codegen/llvm/emitter.h"

namespace hone::codegen {

// if c { B[n] = e  n = n + 1 } in lanes: the values of the lanes that pass, packed, are stored as a
// whole vector. Its rest falls into what the next ones overwrite or into the padding that every
// allocated buffer has behind its last element (emit_alloc).
void PhaseEmitter::emit_filter(const ir::StmtNode& s) {
  statements_ += static_cast<int64_t>(s.body.size());
  llvm::Value* passes = splat(condition(s.condition));
  if (failed()) return;
  const Lanes outer = lanes_;
  lanes_.mask = outer.mask ? builder_.CreateAnd(outer.mask, passes) : passes;
  passes = all_lanes_mask();
  std::vector<llvm::Value*> packed;
  for (size_t i = 0; i + 1 < s.body.size(); ++i) {
    llvm::Value* all = to_memory(splat(value(s.body[i]->value)), s.body[i]->buffer->dtype);
    if (failed()) return;
    packed.push_back(
        builder_.CreateIntrinsic(llvm::Intrinsic::experimental_vector_compress, {all->getType()},
                                 {all, passes, llvm::PoisonValue::get(all->getType())}));
  }
  lanes_ = outer;
  for (size_t i = 0; i < packed.size() && !failed(); ++i) {
    const Access to = access(s.body[i]->buffer, s.body[i]->indices);
    builder_.CreateAlignedStore(packed[i], address(to), alignment(to, false));
  }
  const Access counter = access(s.body.back()->buffer, {});
  if (failed()) return;
  llvm::Value* bits =
      builder_.CreateBitCast(passes, builder_.getIntNTy(static_cast<unsigned>(lanes_.width)));
  llvm::Value* many = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
  store(counter,
        builder_.CreateAdd(load(counter), builder_.CreateZExt(many, builder_.getInt64Ty())));
}

}  // namespace hone::codegen
