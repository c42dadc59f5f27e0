#include "hone/ir/expr.h"

#include <array>
#include <cmath>
#include <limits>

#include "hone/base/assert.h"
#include "hone/ir/scalar.h"

namespace hone::ir {
namespace {

constexpr std::array<OpInfo, kNumOps> kOps = {{
    {"int", 0},     {"float", 0}, {"var", 0},      {"load", -1},    {"add", 2},    {"sub", 2},
    {"mul", 2},     {"div", 2},   {"floordiv", 2}, {"floormod", 2}, {"rem", 2},    {"min", 2},
    {"max", 2},     {"pow", 2},   {"bitand", 2},   {"bitor", 2},    {"bitxor", 2}, {"shl", 2},
    {"shr", 2},     {"lt", 2},    {"le", 2},       {"eq", 2},       {"ne", 2},     {"and", 2},
    {"or", 2},      {"not", 1},   {"select", 3},   {"cast", 1},     {"as", 1},     {"neg", 1},
    {"abs", 1},     {"sqrt", 1},  {"exp", 1},      {"log", 1},      {"tanh", 1},   {"erf", 1},
    {"sigmoid", 1}, {"floor", 1}, {"ceil", 1},     {"round", 1},    {"sin", 1},    {"cos", 1},
    {"atan", 1},
}};

Expr node(ExprNode n) { return std::make_shared<const ExprNode>(std::move(n)); }

Expr integer(int64_t value, DType type) {
  return node({.op = Op::kInt, .type = type, .int_value = wrap_int(type, value)});
}
// A constant of any type.
Expr number(int64_t value, DType type) {
  return is_float(type) ? constant_float(static_cast<double>(value), type) : integer(value, type);
}
bool is_number(const Expr& e, double value) {
  return (e->op == Op::kFloat && e->float_value == value) ||
         (e->op == Op::kInt && e->int_value == static_cast<int64_t>(value));
}

// A zero that changes no bit of what it is added to: any of an integer; of floats -0, as -0 + 0 is
// +0. What is subtracted is neutral where its negative is.
bool is_neutral_zero(const Expr& e, bool subtracted) {
  return is_number(e, 0) && (e->op == Op::kInt || std::signbit(e->float_value) != subtracted);
}

DType result_type(Op op, const std::vector<Expr>& args) {
  if (is_compare(op) || op == Op::kAnd || op == Op::kOr || op == Op::kNot) return DType::kBool;
  return op == Op::kSelect ? args[1]->type : args[0]->type;
}

// Both operands are constants of one kind.
Expr fold_binary(Op op, const Expr& a, const Expr& b) {
  if (a->op == Op::kFloat && b->op == Op::kFloat) {
    if (is_compare(op)) return constant_bool(apply_compare(op, a->float_value, b->float_value));
    return constant_float(apply_binary(op, a->float_value, b->float_value), a->type);
  }
  if (a->op != Op::kInt || b->op != Op::kInt) return nullptr;
  if (is_compare(op))
    return constant_bool(compare_integers(op, a->type, a->int_value, b->int_value));
  if (is_division(op) && b->int_value == 0) return nullptr;
  return integer(apply_integer(op, a->type, a->int_value, b->int_value), a->type);
}

// One operand is a constant, or both are one node.
Expr fold_identity(Op op, const Expr& a, const Expr& b) {
  const bool ints = !is_float(a->type);
  switch (op) {
    case Op::kAdd:
      if (is_neutral_zero(b, false)) return a;
      if (is_neutral_zero(a, false)) return b;
      if (ints && a->op == Op::kInt) return make(op, {b, a});
      if (ints && b->op == Op::kInt && a->op == Op::kAdd && a->args[1]->op == Op::kInt) {
        return make(op, {a->args[0], make(op, {a->args[1], b})});
      }
      return nullptr;
    case Op::kSub: return is_neutral_zero(b, true) ? a : nullptr;
    case Op::kMul:
      if (is_number(b, 1)) return a;
      if (is_number(a, 1)) return b;
      if (ints && (is_number(a, 0) || is_number(b, 0))) return integer(0, a->type);
      if (ints && a->op == Op::kInt) return make(op, {b, a});
      return nullptr;
    case Op::kDiv: return is_number(b, 1) ? a : nullptr;
    case Op::kFloorDiv: return is_number(b, 1) ? a : nullptr;
    case Op::kFloorMod: return is_number(b, 1) ? integer(0, a->type) : nullptr;
    case Op::kMin:
    case Op::kMax: return a == b ? a : nullptr;
    case Op::kAnd:
      if (is_true(a) || is_false(b)) return b;
      if (is_true(b) || is_false(a)) return a;
      return nullptr;
    case Op::kOr:
      if (is_false(a) || is_true(b)) return b;
      if (is_false(b) || is_true(a)) return a;
      return nullptr;
    default: return nullptr;
  }
}

Expr fold_unary(Op op, const Expr& a) {
  if (a->op == Op::kFloat) return constant_float(apply_unary(op, a->float_value), a->type);
  if (a->op == Op::kInt && op == Op::kAbs && a->type == DType::kU64) return a;
  if (a->op == Op::kInt) return integer(apply_unary(op, a->int_value), a->type);
  return op == Op::kNot && a->op == Op::kNot ? a->args[0] : nullptr;
}

}  // namespace

const OpInfo& op_info(Op op) { return kOps[static_cast<size_t>(op)]; }

VarPtr make_var(std::string name) { return std::make_shared<const Var>(Var{std::move(name)}); }

std::string_view scope_name(Scope scope) {
  constexpr std::array<std::string_view, kNumScopes> kNames = {
      "global", "thread", "stack", "register", "shared", "fragment", "signal"};
  return kNames[static_cast<size_t>(scope)];
}

int64_t Buffer::num_elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

BufferPtr make_buffer(std::string name, DType dtype, std::vector<int64_t> shape, Scope scope) {
  return std::make_shared<const Buffer>(
      Buffer{std::move(name), dtype, std::move(shape), scope, {}});
}

Expr constant(int64_t value) { return integer(value, DType::kI64); }
Expr constant_bool(bool value) { return integer(value, DType::kBool); }
Expr constant_int(int64_t value, DType type) {
  HONE_ASSERT(!is_float(type), "an integer constant of a float type");
  return integer(value, type);
}

Expr constant_float(double value, DType type) {
  HONE_ASSERT(is_float(type), "a float constant of an integer type");
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return node({.op = Op::kFloat, .type = type, .float_value = round_float(type, value)});
}

Expr variable(const VarPtr& var) {
  HONE_ASSERT(var != nullptr, "a variable that is null");
  return node({.op = Op::kVar, .type = DType::kI64, .var = var});
}

Expr load(const BufferPtr& buffer, std::vector<Expr> indices) {
  HONE_ASSERT(indices.size() == buffer->shape.size(), "a load needs one index per dimension");
  for (const Expr& i : indices) HONE_ASSERT(i->type == DType::kI64, "an index is not i64");
  return node(
      {.op = Op::kLoad, .type = buffer->dtype, .buffer = buffer, .args = std::move(indices)});
}

Status check_operands(Op op, const std::vector<Expr>& args) {
  const OpInfo& info = op_info(op);
  if (op <= Op::kLoad || op == Op::kCast || op == Op::kBits)
    return invalid("'{}' is not built from operands alone", info.name);
  if (static_cast<int>(args.size()) != info.arity) {
    return invalid("'{}' has {} operands, expected {}", info.name, args.size(), info.arity);
  }
  const auto name = [&](size_t i) { return dtype_name(args[i]->type); };
  if (op == Op::kSelect) {
    if (args[0]->type != DType::kBool)
      return invalid("the condition of select is {}, expected bool", name(0));
    if (args[1]->type != args[2]->type) return invalid("select of {} and {}", name(1), name(2));
    return ok_status();
  }
  if (op == Op::kAnd || op == Op::kOr || op == Op::kNot) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i]->type != DType::kBool)
        return invalid("an operand of '{}' is {}, expected bool", info.name, name(i));
    }
    return ok_status();
  }
  if (args.size() == 2 && args[0]->type != args[1]->type) {
    return invalid("'{}' of {} and {}", info.name, name(0), name(1));
  }
  if (is_compare(op)) return ok_status();
  const bool is_real = is_float(args[0]->type);
  if (args[0]->type == DType::kBool) return invalid("'{}' of bool", info.name);
  if (is_real && (op == Op::kFloorDiv || op == Op::kFloorMod))
    return invalid("'{}' of {}", info.name, name(0));
  if (is_real && op >= Op::kBitAnd && op <= Op::kShr)
    return invalid("'{}' of {}, expected an integer", info.name, name(0));
  const bool floats_only = op == Op::kPow || op > Op::kAbs;
  if (!is_real && floats_only) return invalid("'{}' of {}, expected a float", info.name, name(0));
  return ok_status();
}

Expr make(Op op, std::vector<Expr> args) {
  const Status legal = check_operands(op, args);
  HONE_ASSERT(legal.ok(), legal.message().c_str());
  Expr folded;
  if (op == Op::kSelect) {
    if (is_true(args[0])) return args[1];
    if (is_false(args[0]) || args[1] == args[2]) return args[2];
  } else if (args.size() == 1) {
    folded = fold_unary(op, args[0]);
  } else {
    folded = fold_binary(op, args[0], args[1]);
    if (!folded) folded = fold_identity(op, args[0], args[1]);
  }
  if (folded) return folded;
  const DType type = result_type(op, args);
  return node({.op = op, .type = type, .args = std::move(args)});
}

Expr cast(DType type, const Expr& value) {
  if (value->type == type) return value;
  if (value->op == Op::kInt) {
    if (is_float(type))
      return constant_float(int_to_float(value->type, type, value->int_value), type);
    return integer(value->int_value, type);
  }
  if (value->op == Op::kFloat) {
    if (is_float(type)) return constant_float(value->float_value, type);
    return integer(float_to_int(type, value->float_value), type);
  }
  return node({.op = Op::kCast, .type = type, .args = {value}});
}

Expr bit_cast(DType type, const Expr& value) {
  HONE_ASSERT(dtype_bytes(type) == dtype_bytes(value->type), "bits of another width");
  if (value->type == type) return value;
  if (value->op == Op::kInt || value->op == Op::kFloat) {
    const uint64_t bits = value->op == Op::kInt ? static_cast<uint64_t>(value->int_value)
                                                : float_bits(value->type, value->float_value);
    return is_float(type) ? constant_float(bits_float(type, bits), type)
                          : integer(static_cast<int64_t>(bits), type);
  }
  return node({.op = Op::kBits, .type = type, .args = {value}});
}

Expr with_args(const ExprNode& n, std::vector<Expr> args) {
  if (n.op == Op::kLoad) return load(n.buffer, std::move(args));
  if (n.op == Op::kCast) return cast(n.type, args[0]);
  if (n.op == Op::kBits) return bit_cast(n.type, args[0]);
  if (args.empty()) return node(n);
  return make(n.op, std::move(args));
}

Expr select(const Expr& condition, const Expr& if_true, const Expr& if_false) {
  return make(Op::kSelect, {condition, if_true, if_false});
}
Expr operator+(const Expr& a, const Expr& b) { return make(Op::kAdd, {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return make(Op::kSub, {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return make(Op::kMul, {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return make(Op::kDiv, {a, b}); }
Expr operator+(const Expr& a, int64_t b) { return make(Op::kAdd, {a, number(b, a->type)}); }
Expr operator-(const Expr& a, int64_t b) { return make(Op::kSub, {a, number(b, a->type)}); }
Expr operator*(const Expr& a, int64_t b) { return make(Op::kMul, {a, number(b, a->type)}); }
Expr floordiv(const Expr& a, int64_t b) { return make(Op::kFloorDiv, {a, number(b, a->type)}); }
Expr floormod(const Expr& a, int64_t b) { return make(Op::kFloorMod, {a, number(b, a->type)}); }
Expr min(const Expr& a, const Expr& b) { return make(Op::kMin, {a, b}); }
Expr max(const Expr& a, const Expr& b) { return make(Op::kMax, {a, b}); }
Expr less(const Expr& a, const Expr& b) { return make(Op::kLt, {a, b}); }
Expr less_equal(const Expr& a, const Expr& b) { return make(Op::kLe, {a, b}); }
Expr logical_and(const Expr& a, const Expr& b) { return make(Op::kAnd, {a, b}); }

bool is_const_int(const Expr& e) { return e->op == Op::kInt; }
bool is_const_int(const Expr& e, int64_t value) {
  return e->op == Op::kInt && e->int_value == value;
}
bool is_true(const Expr& e) {
  return e->op == Op::kInt && e->type == DType::kBool && e->int_value != 0;
}
bool is_false(const Expr& e) {
  return e->op == Op::kInt && e->type == DType::kBool && e->int_value == 0;
}

bool equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (!a || !b || a->op != b->op || a->type != b->type || a->int_value != b->int_value ||
      std::bit_cast<uint64_t>(a->float_value) != std::bit_cast<uint64_t>(b->float_value) ||
      a->var != b->var || a->buffer != b->buffer || a->args.size() != b->args.size()) {
    return false;
  }
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (!equal(a->args[i], b->args[i])) return false;
  }
  return true;
}

Expr substitute(const Expr& e, const VarMap& map) {
  return rewrite(e, [&map](const Expr& n) -> Expr {
    if (n->op != Op::kVar) return nullptr;
    for (const auto& [var, value] : map) {
      if (var == n->var) return value;
    }
    return nullptr;
  });
}

}  // namespace hone::ir
