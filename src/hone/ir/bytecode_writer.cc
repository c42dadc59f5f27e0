#include "hone/ir/bytecode_writer.h"

#include <algorithm>

#include "hone/base/assert.h"
#include "hone/ir/gelu.h"
#include "hone/ir/scalar.h"

namespace hone::ir {
namespace {

// Temporaries are numbered from here until the number of the other registers is known.
constexpr int32_t kTemporary = 1 << 24;

bool is_narrow(DType type) {
  return !is_float(type) && type != DType::kBool && dtype_bytes(type) < 8;
}

template <typename T>
uint16_t pair(T first, DType second) {
  return static_cast<uint16_t>(static_cast<int>(first) << 8 | static_cast<int>(second));
}

Opcode binary_code(Op op, DType type) {
  const bool floats = is_float(type);
  if (type == DType::kU64) {
    if (is_compare(op)) return Opcode::kCompareU;
    if (is_division(op) || op == Op::kMin || op == Op::kMax) return Opcode::kTyped;
  }
  switch (op) {
    case Op::kAdd: return floats ? Opcode::kAddF : Opcode::kAddI;
    case Op::kSub: return floats ? Opcode::kSubF : Opcode::kSubI;
    case Op::kMul: return floats ? Opcode::kMulF : Opcode::kMulI;
    case Op::kDiv: return floats ? Opcode::kDivF : Opcode::kDivI;
    case Op::kMin: return floats ? Opcode::kMinF : Opcode::kMinI;
    case Op::kMax: return floats ? Opcode::kMaxF : Opcode::kMaxI;
    case Op::kFloorDiv: return Opcode::kFloorDivI;
    case Op::kFloorMod: return Opcode::kFloorModI;
    case Op::kPow: return Opcode::kPowF;
    case Op::kLt: return floats ? Opcode::kLtF : Opcode::kLtI;
    case Op::kLe: return floats ? Opcode::kLeF : Opcode::kLeI;
    case Op::kEq: return floats ? Opcode::kEqF : Opcode::kEqI;
    case Op::kNe: return floats ? Opcode::kNeF : Opcode::kNeI;
    case Op::kAnd:
    case Op::kBitAnd: return Opcode::kAnd;
    case Op::kOr:
    case Op::kBitOr: return Opcode::kOr;
    case Op::kBitXor: return Opcode::kXor;
    case Op::kShl:
    case Op::kShr: return Opcode::kTyped;
    case Op::kRem: return floats ? Opcode::kRemF : Opcode::kTyped;
    default: HONE_ASSERT(false, "not a binary operator");
  }
}

// Returns whether Instruction::a is a register, not the number of an access, a buffer or the like.
bool first_is_register(Opcode code) {
  switch (code) {
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kStoreF32:
    case Opcode::kAddTo:
    case Opcode::kAddToF32:
    case Opcode::kAlloc:
    case Opcode::kExtern:
    case Opcode::kArrive:
    case Opcode::kAwait:
    case Opcode::kRoles: return false;
    default: return true;
  }
}

}  // namespace

int32_t BytecodeWriter::emit(Instruction instruction) {
  out_.code.push_back(instruction);
  return static_cast<int32_t>(out_.code.size()) - 1;
}

int32_t BytecodeWriter::declare(const BufferPtr& buffer) {
  const auto [it, added] =
      buffers_.try_emplace(buffer.get(), static_cast<int32_t>(out_.buffers.size()));
  if (added) out_.buffers.push_back(buffer);
  return it->second;
}

int32_t BytecodeWriter::find(const BufferPtr& buffer) {
  const auto it = buffers_.find(buffer.get());
  if (it != buffers_.end()) return it->second;
  fail(invalid("buffer {} is not declared where it is used", buffer->name));
  return 0;
}

int32_t BytecodeWriter::constant(Cell cell) {
  const auto [it, added] =
      constants_.try_emplace(cell.i, static_cast<int32_t>(out_.constants.size()));
  if (added) out_.constants.push_back(cell);
  return it->second * 2;
}

int32_t BytecodeWriter::new_temporary() {
  max_temporaries_ = std::max(max_temporaries_, temporaries_ + 1);
  return kTemporary + temporaries_++;
}

int32_t BytecodeWriter::resolve(int32_t r) const {
  const auto num_constants = static_cast<int32_t>(out_.constants.size());
  if (r >= kTemporary) return num_constants + loop_registers_ + (r - kTemporary);
  return r % 2 == 0 ? r / 2 : num_constants + r / 2;
}

void BytecodeWriter::number_registers() {
  out_.num_registers =
      static_cast<int32_t>(out_.constants.size()) + loop_registers_ + max_temporaries_;
  for (Instruction& i : out_.code) {
    i.dst = resolve(i.dst);
    if (first_is_register(i.code)) i.a = resolve(i.a);
    i.b = resolve(i.b);
    i.end = resolve(i.end);
  }
  for (Access& access : out_.accesses) {
    for (int32_t& r : access.index) r = resolve(r);
  }
}

Access BytecodeWriter::new_access(const BufferPtr& buffer, bool is_store) {
  const bool async = source_ != nullptr && source_->async;
  return {find(buffer), {},      statement_,
          is_store,     async,   source_ != nullptr && source_->kind == StmtKind::kBoxCopy,
          source_,      is_store};
}

int32_t BytecodeWriter::access(const BufferPtr& buffer, const std::vector<Expr>& indices,
                               bool is_store) {
  Access access = new_access(buffer, is_store);
  for (const Expr& i : indices) access.index.push_back(value(i));
  const bool of_store = source_ != nullptr && source_->kind == StmtKind::kStore;
  access.of_stored |= of_store && buffer == source_->buffer &&
                      std::equal(indices.begin(), indices.end(), source_->indices.begin(),
                                 [](const Expr& a, const Expr& b) { return equal(a, b); });
  out_.accesses.push_back(std::move(access));
  return static_cast<int32_t>(out_.accesses.size()) - 1;
}

int32_t BytecodeWriter::leaf(const Expr& e) {
  if (e->op == Op::kInt) return constant({.i = e->int_value});
  if (e->op == Op::kFloat) return constant({.f = e->float_value});
  if (e->op != Op::kVar) {
    const auto known = invariants_.find(e.get());
    return known == invariants_.end() ? -1 : known->second;
  }
  const auto it = vars_.find(e->var.get());
  if (it != vars_.end()) return it->second;
  fail(invalid("variable {} is not bound where it is used", e->var->name));
  return constant({.i = 0});
}

int32_t BytecodeWriter::value(const Expr& e) {
  const int32_t r = leaf(e);
  if (r >= 0) return r;
  const int32_t saved = temporaries_;
  const int32_t dst = new_temporary();
  value_into(e, dst);
  temporaries_ = saved + 1;
  return dst;
}

void BytecodeWriter::value_into(const Expr& e, int32_t dst) {
  if (const int32_t r = leaf(e); r >= 0) {
    emit({.code = Opcode::kMove, .dst = dst, .a = r});
    return;
  }
  if (e->op == Op::kLoad) {
    emit({.code = Opcode::kLoad, .dst = dst, .a = access(e->buffer, e->args, false)});
    return;
  }
  if (e->op == Op::kSelect) {
    const int32_t test = emit({.code = Opcode::kJumpIfFalse, .a = value(e->args[0])});
    value_into(e->args[1], dst);
    const int32_t skip = emit({.code = Opcode::kJump});
    out_.code[test].target = here();
    value_into(e->args[2], dst);
    out_.code[skip].target = here();
    return;
  }
  if (e->op == Op::kCast) return convert(value(e->args[0]), e->args[0]->type, e->type, dst);
  if (e->op == Op::kBits) {
    emit({.code = Opcode::kBits,
          .aux = pair(e->args[0]->type, e->type),
          .dst = dst,
          .a = value(e->args[0])});
    return;
  }
  if (multiply_add(e, dst)) return;
  if (const std::optional<Gelu> found = find_gelu(*e)) {
    const auto aux = static_cast<uint16_t>(found->by_tanh ? 1 : 0);
    emit({.code = Opcode::kGelu, .aux = aux, .dst = dst, .a = value(found->x)});
    return;
  }
  const int32_t a = value(e->args[0]);
  if (e->args.size() == 1) {
    const bool kept = e->op == Op::kAbs && e->type == DType::kU64;
    const Opcode code = kept                ? Opcode::kMove
                        : is_float(e->type) ? Opcode::kUnaryF
                                            : Opcode::kUnaryI;
    emit({.code = code, .aux = static_cast<uint16_t>(e->op), .dst = dst, .a = a});
  } else {
    const DType type = e->args[0]->type;
    const Opcode code = binary_code(e->op, type);
    emit({.code = code,
          .aux = code == Opcode::kTyped ? pair(e->op, type) : static_cast<uint16_t>(e->op),
          .dst = dst,
          .a = a,
          .b = value(e->args[1])});
  }
  if (is_narrow(e->type)) {
    emit({.code = Opcode::kWrap, .aux = static_cast<uint16_t>(e->type), .dst = dst, .a = dst});
  }
}

bool BytecodeWriter::multiply_add(const Expr& e, int32_t dst) {
  if (e->op != Op::kAdd || e->type != DType::kI64) return false;
  const auto is_product = [&](const Expr& arg) {
    return arg->op == Op::kMul && !invariants_.contains(arg.get());
  };
  const bool first = is_product(e->args[0]);
  if (!first && !is_product(e->args[1])) return false;
  const Expr &product = e->args[first ? 0 : 1], &other = e->args[first ? 1 : 0];
  const int32_t a = value(product->args[0]), b = value(product->args[1]);
  emit({.code = Opcode::kMulAddI, .dst = dst, .a = a, .b = b, .end = value(other)});
  return true;
}

void BytecodeWriter::convert(int32_t r, DType from, DType to, int32_t dst) {
  const auto aux = static_cast<uint16_t>(to);
  if (!is_float(from) && is_float(to)) {
    emit({.code = Opcode::kIntToFloat,
          .aux = pair(from, options_.float64 ? DType::kF64 : to),
          .dst = dst,
          .a = r});
    return;
  } else if (is_float(from) && !is_float(to)) {
    emit({.code = Opcode::kFloatToInt, .aux = aux, .dst = dst, .a = r});
    return;
  }
  round(r, to, dst);
}

void BytecodeWriter::round(int32_t r, DType to, int32_t dst) {
  const auto aux = static_cast<uint16_t>(to);
  if (!is_float(to)) {
    emit({.code = Opcode::kWrap, .aux = aux, .dst = dst, .a = r});
  } else if (options_.float64 || to == DType::kF64) {
    emit({.code = Opcode::kMove, .dst = dst, .a = r});
  } else {
    emit({.code = to == DType::kF32 ? Opcode::kRoundF32 : Opcode::kRoundFloat,
          .aux = aux,
          .dst = dst,
          .a = r});
  }
}

}  // namespace hone::ir
