#include "hone/backend/cpu/emit_context.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hone/backend/cpu/emit_object.h"

namespace hone::backend::cpu {
EmitContext::EmitContext(llvm::Module& module, const target::Cpu& target, int64_t max_statements)
    : module(module),
      target(target),
      max_statements(max_statements),
      converts_half(cpu::converts_half(target)),
      builder(module.getContext()) {
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  flags.setNoSignedZeros();
  builder.setFastMathFlags(flags);
}

EmitterPart::EmitterPart(EmitContext& context)
    : context_(context),
      builder_(context.builder),
      target_(context.target),
      space_(context.space),
      lanes_(context.lanes) {}

void EmitterPart::fail(Status status) {
  if (context_.status.ok()) context_.status = std::move(status);
}

llvm::BasicBlock* EmitterPart::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_.module.getContext(), name, context_.function);
}

llvm::Value* EmitterPart::entry_alloca(llvm::Type* type, int64_t count) {
  const llvm::IRBuilder<>::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(&context_.function->getEntryBlock(),
                          context_.function->getEntryBlock().begin());
  llvm::Type* array =
      llvm::ArrayType::get(type, static_cast<uint64_t>(std::max<int64_t>(count, 1)));
  llvm::AllocaInst* memory = builder_.CreateAlloca(array);
  memory->setAlignment(llvm::Align(kBaseAlignment));
  return memory;
}

llvm::Value* EmitterPart::advance(llvm::Value* pointer, int64_t bytes) {
  if (bytes == 0) return pointer;
  return builder_.CreateConstGEP1_64(builder_.getInt8Ty(), pointer, static_cast<uint64_t>(bytes));
}

llvm::Value* EmitterPart::named_constant(const std::string& name,
                                         llvm::function_ref<llvm::Constant*()> make) {
  if (llvm::GlobalVariable* known = context_.module.getGlobalVariable(name, true)) return known;
  llvm::Constant* values = make();
  auto* made = new llvm::GlobalVariable(context_.module, values->getType(), true,
                                        llvm::GlobalValue::InternalLinkage, values, name);
  made->setAlignment(llvm::Align(kBaseAlignment));
  return made;
}

llvm::Type* EmitterPart::type_of(DType type) {
  switch (type) {
    case DType::kF32: return builder_.getFloatTy();
    case DType::kF64: return builder_.getDoubleTy();
    case DType::kF16:
    case DType::kBF16: return builder_.getFloatTy();  // rounded when stored
    case DType::kBool: return builder_.getInt1Ty();
    default: return builder_.getIntNTy(static_cast<unsigned>(dtype_bytes(type)) * 8);
  }
}

llvm::Type* EmitterPart::with_lanes(llvm::Type* type) {
  return llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_.width));
}

llvm::Constant* EmitterPart::integer(llvm::Type* type, int64_t v) {
  return llvm::ConstantInt::get(
      type, llvm::APInt(type->getIntegerBitWidth(), static_cast<uint64_t>(v), false, true));
}

llvm::Value* EmitterPart::splat(llvm::Value* v) {
  if (v->getType()->isVectorTy() || lanes_.width == 1) return v;
  return builder_.CreateVectorSplat(static_cast<unsigned>(lanes_.width), v);
}

void EmitterPart::match(llvm::Value*& a, llvm::Value*& b) {
  if (a->getType()->isVectorTy() == b->getType()->isVectorTy()) return;
  a = splat(a);
  b = splat(b);
}

llvm::Value* EmitterPart::lane_numbers(llvm::Type* element) {
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < lanes_.width; ++i)
    numbers.push_back(llvm::ConstantInt::get(element, static_cast<uint64_t>(i)));
  return llvm::ConstantVector::get(numbers);
}

llvm::Value* EmitterPart::part_of(llvm::Value* vector, int first, int count, int size) {
  std::vector<int> lanes(static_cast<size_t>(std::max(count, size)), -1);
  std::iota(lanes.begin(), lanes.begin() + count, first);
  return builder_.CreateShuffleVector(vector, lanes);
}

llvm::Value* EmitterPart::with_part(llvm::Value* vector, llvm::Value* part, int first) {
  const auto count = [](llvm::Value* v) {
    return static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
  };
  const int size = count(vector);
  std::vector<int> lanes(static_cast<size_t>(size));
  std::iota(lanes.begin(), lanes.end(), 0);
  std::iota(lanes.begin() + first, lanes.begin() + first + count(part), size);
  return builder_.CreateShuffleVector(vector, part_of(part, 0, count(part), size), lanes);
}

llvm::Value* EmitterPart::tail_mask() {
  if (lanes_.active == lanes_.width) return nullptr;
  std::vector<llvm::Constant*> bits;
  for (int i = 0; i < lanes_.width; ++i) bits.push_back(builder_.getInt1(i < lanes_.active));
  return llvm::ConstantVector::get(bits);
}

llvm::Value* EmitterPart::all_lanes_mask() {
  llvm::Value* tail = tail_mask();
  if (!lanes_.mask) return tail;
  return tail ? builder_.CreateAnd(lanes_.mask, tail) : lanes_.mask;
}

llvm::Value* EmitterPart::any_lane() {
  return lanes_.mask ? builder_.CreateOrReduce(all_lanes_mask()) : nullptr;
}

llvm::Value* EmitterPart::both(llvm::Value* outer, llvm::Value* condition) {
  return outer ? builder_.CreateAnd(outer, condition) : condition;
}

}  // namespace hone::backend::cpu
