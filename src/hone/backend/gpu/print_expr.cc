#include "hone/backend/gpu/print_expr.h"

#include <fmt/format.h>

#include "hone/ir/scalar.h"

namespace hone::backend::gpu {
namespace {

using ir::Expr;
using ir::ExprNode;
using ir::Op;

// Precedence of C's operators.
enum Level {
  kTernary = 1,
  kOr,
  kAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPrimary
};

bool is_index(DType type) { return type == DType::kI64; }
bool is_unsigned(DType type) {
  return type == DType::kU8 || type == DType::kU16 || type == DType::kU32 || type == DType::kU64;
}
bool has_sign(DType type) { return !is_float(type) && !is_unsigned(type); }
bool is_narrow(DType type) { return dtype_bytes(type) < 4; }
std::string_view float_name(DType type) { return type == DType::kF64 ? "double" : "float"; }
// Returns the suffix of functions of integers of the type: those of less than 32 bits are int.
std::string_view integer_name(DType type) {
  switch (type) {
    case DType::kU32: return "uint";
    case DType::kU64: return "ulong";
    case DType::kI64: return "long";
    default: return "int";
  }
}

}  // namespace

std::string ExprPrinter::at(const Text& t, int level) const {
  return t.level < level ? fmt::format("({})", t.text) : t.text;
}
std::string ExprPrinter::factor(const Expr& e) { return at(text(e), kProduct); }

ExprPrinter::Text ExprPrinter::infix(const Text& a, const char* sign, const Text& b,
                                     int level) const {
  return {fmt::format("{} {} {}", at(a, level), sign, at(b, level + 1)), level, a.wide || b.wide};
}
ExprPrinter::Text ExprPrinter::call(std::string_view function, const std::string& arguments) {
  return {fmt::format("{}({})", function, arguments), kPrimary};
}
ExprPrinter::Text ExprPrinter::cast_to(std::string_view type, const Text& t) const {
  return {fmt::format("({}){}", type, at(t, kUnary)), kUnary, type == "long"};
}
// The result of arithmetic as int or uint, as a value of a type of at most 32 bits.
ExprPrinter::Text ExprPrinter::wrapped(DType type, Text t) const {
  if (type == DType::kU32 || type == DType::kU64) return t;
  return cast_to(value_type(context_.dialect, type), t);
}

ExprPrinter::Text ExprPrinter::text(const Expr& e) {
  if (--context_.budget < 0) {
    context_.fail(error(Code::kUnsupported, "the kernel becomes too much code"));
    return {"0", kPrimary};
  }
  switch (e->op) {
    case Op::kInt: {
      const std::string literal = integer_literal(e->type, e->int_value);
      return {literal, literal[0] == '-' ? kUnary : kPrimary,
              is_index(e->type) && !fits_int({e->int_value, e->int_value})};
    }
    case Op::kFloat: {
      const std::string literal = float_literal(e->type, e->float_value);
      if (literal.ends_with("INFINITY")) context_.functions.use("INFINITY");
      if (literal == "NAN") context_.functions.use("NAN");
      return {literal, literal[0] == '-' ? kUnary : kPrimary};
    }
    case Op::kVar:
      return {context_.names.of(e->var.get()), kPrimary, !fits_int(context_.ranges.of(e->var))};
    case Op::kLoad: return loaded(*e);
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul: return arithmetic(*e, e);
    case Op::kDiv:
    case Op::kFloorDiv:
    case Op::kFloorMod:
    case Op::kRem: return division(*e);
    case Op::kMin:
    case Op::kMax: return min_max(*e);
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kBitXor: return bitwise(*e);
    case Op::kShl:
    case Op::kShr: return shift(*e);
    case Op::kLt: return infix(text(e->args[0]), "<", text(e->args[1]), kRelation);
    case Op::kLe: return infix(text(e->args[0]), "<=", text(e->args[1]), kRelation);
    case Op::kEq: return infix(text(e->args[0]), "==", text(e->args[1]), kEquality);
    case Op::kNe: return infix(text(e->args[0]), "!=", text(e->args[1]), kEquality);
    case Op::kAnd: return infix(text(e->args[0]), "&&", text(e->args[1]), kAnd);
    case Op::kOr: return infix(text(e->args[0]), "||", text(e->args[1]), kOr);
    case Op::kNot: return {"!" + at(text(e->args[0]), kUnary), kUnary};
    case Op::kSelect: return selected(*e);
    case Op::kCast: return converted(text(e->args[0]), e->args[0]->type, e->type);
    case Op::kBits: return reinterpreted(*e);
    case Op::kNeg: return negated(*e, e);
    case Op::kAbs: return absolute(*e);
    case Op::kSigmoid:
      return call(context_.functions.use(fmt::format("sigmoid_{}", float_name(e->type))),
                  print(e->args[0]));
    default: break;
  }
  const bool is_double = e->type == DType::kF64;
  if (e->op == Op::kPow && e->args[0]->op == Op::kFloat && e->args[0]->float_value == 2)
    return call(power_of_2_function(context_.dialect, is_double), print(e->args[1]));
  const std::string name = math_function(context_.dialect, e->op, is_double);
  std::string arguments = print(e->args[0]);
  if (e->args.size() == 2) arguments += ", " + print(e->args[1]);
  return call(name, arguments);
}

std::string ExprPrinter::element(const ir::BufferPtr& buffer, const std::vector<Expr>& indices) {
  if (memory_.is_vector(*buffer)) return memory_.component(*buffer, indices);
  std::string out = memory_.name(*buffer);
  for (const Expr& index : memory_.subscripts(buffer, indices))
    out += fmt::format("[{}]", print(index));
  return out;
}

ExprPrinter::Text ExprPrinter::loaded(const ExprNode& e) {
  const Text raw = {element(e.buffer, e.args), kPrimary, is_index(e.type)};
  if (memory_.holds_values(*e.buffer)) return raw;
  switch (e.type) {
    case DType::kBool: return {raw.text + " != 0", kEquality};
    case DType::kF16: return call(context_.functions.use("float_of_half"), raw.text);
    case DType::kBF16: return call(context_.functions.use("float_of_bfloat"), raw.text);
    default: return raw;
  }
}

std::string ExprPrinter::stored(const Expr& value) {
  if (!is_small_float(value->type)) return print(value);
  const Unrounded from = unrounded(value);
  if (from.type == DType::kU16) return from.text;
  const std::string name = fmt::format("{}_of_{}", value->type == DType::kF16 ? "half" : "bfloat",
                                       from.type == DType::kF64 ? "double" : "float");
  return call(context_.functions.use(name), from.text).text;
}

std::string ExprPrinter::stored_pair(const Expr& first, const Expr& second) {
  const Unrounded a = unrounded(first), b = unrounded(second);
  if (a.type != DType::kF32 || b.type != DType::kF32)
    return call(context_.functions.use("two_halves"), stored(first) + ", " + stored(second)).text;
  const bool half = first->type == DType::kF16;
  return call(context_.functions.use(half ? "halves_of_floats" : "bfloats_of_floats"),
              a.text + ", " + b.text)
      .text;
}

ExprPrinter::Unrounded ExprPrinter::unrounded(const Expr& value) {
  // A value that is widened and rounded back stays as it is.
  const auto is_exact = [&](const Expr& e) {
    return e->op == Op::kCast && (e->args[0]->type == value->type ||
                                  (is_float(e->args[0]->type) && e->args[0]->op == Op::kCast &&
                                   e->args[0]->args[0]->type == value->type));
  };
  Expr e = value;
  while (is_exact(e)) e = e->args[0]->type == value->type ? e->args[0] : e->args[0]->args[0];
  if (e->op == Op::kLoad && !memory_.holds_values(*e->buffer))
    return {element(e->buffer, e->args), DType::kU16};
  const bool from_float = e->op == Op::kCast && is_float(e->args[0]->type);
  if (!from_float) return {print(e), DType::kF32};
  return {print(e->args[0]), e->args[0]->type == DType::kF64 ? DType::kF64 : DType::kF32};
}

ExprPrinter::Text ExprPrinter::arithmetic(const ExprNode& e, const Expr& whole) {
  if (is_index(e.type)) return index_arithmetic(e, whole);
  const char* sign = e.op == Op::kAdd ? "+" : e.op == Op::kSub ? "-" : "*";
  const int level = e.op == Op::kMul ? kProduct : kSum;
  Text a = text(e.args[0]);
  Text b = text(e.args[1]);
  if (is_float(e.type) || e.type == DType::kU32 || e.type == DType::kU64)
    return infix(a, sign, b, level);
  // Types without sign wrap. Sums of less than 32 bits are right as int.
  if (e.op == Op::kMul || !is_narrow(e.type)) a = cast_to("uint", a), b = cast_to("uint", b);
  return wrapped(e.type, infix(a, sign, b, level));
}

// Index arithmetic does not overflow; that of data (a load) wraps.
ExprPrinter::Text ExprPrinter::index_arithmetic(const ExprNode& e, const Expr& whole) {
  const char* sign = e.op == Op::kAdd ? "+" : e.op == Op::kSub ? "-" : "*";
  const int level = e.op == Op::kMul ? kProduct : kSum;
  Text a = text(e.args[0]);
  Text b = text(e.args[1]);
  const bool wide = a.wide || b.wide || !fits_int(context_.ranges.of(whole));
  if (wide && ir::has_load(whole)) {
    Text sum = infix(cast_to("ulong", a), sign, cast_to("ulong", b), level);
    return cast_to("long", sum);
  }
  if (wide && !a.wide && !b.wide) a = cast_to("long", a);
  return infix(a, sign, b, level);
}

ExprPrinter::Text ExprPrinter::division(const ExprNode& e) {
  Text a = text(e.args[0]);
  Text b = text(e.args[1]);
  const bool quotient = e.op == Op::kDiv || e.op == Op::kFloorDiv;
  if (is_float(e.type)) {
    if (e.op == Op::kDiv) return infix(a, "/", b, kProduct);
    return call(math_function(context_.dialect, e.op, e.type == DType::kF64),
                a.text + ", " + b.text);
  }
  const bool known =
      ir::is_const_int(e.args[1]) && e.args[1]->int_value != 0 && e.args[1]->int_value != -1;
  bool rounds_down = e.op == Op::kFloorDiv || e.op == Op::kFloorMod;
  if (is_index(e.type) && known && e.args[1]->int_value > 0 &&
      context_.ranges.of(e.args[0]).lo >= 0)
    rounds_down = false;
  if (!has_sign(e.type) || (known && !rounds_down))
    return infix(a, quotient ? "/" : "%", b, kProduct);
  const bool wide = is_index(e.type) && (a.wide || b.wide || !known);
  const std::string_view what =
      rounds_down ? (quotient ? "floor_div" : "floor_mod") : (quotient ? "div" : "rem");
  Text result = call(context_.functions.use(fmt::format("{}_{}", what, wide ? "long" : "int")),
                     a.text + ", " + b.text);
  result.wide = wide;
  return is_narrow(e.type) ? wrapped(e.type, result) : result;
}

ExprPrinter::Text ExprPrinter::min_max(const ExprNode& e) {
  const Text a = text(e.args[0]);
  const Text b = text(e.args[1]);
  const std::string_view what = e.op == Op::kMin ? "min" : "max";
  const bool wide = is_index(e.type) && (a.wide || b.wide);
  const std::string_view type = is_float(e.type)            ? float_name(e.type)
                                : is_index(e.type) && !wide ? "int"
                                                            : integer_name(e.type);
  Text result =
      call(context_.functions.use(fmt::format("{}_{}", what, type)), a.text + ", " + b.text);
  result.wide = wide;
  return result;
}

ExprPrinter::Text ExprPrinter::bitwise(const ExprNode& e) {
  const char* sign = e.op == Op::kBitAnd ? "&" : e.op == Op::kBitOr ? "|" : "^";
  const int level = e.op == Op::kBitAnd ? kBitAnd : e.op == Op::kBitOr ? kBitOr : kBitXor;
  // Compilers warn of sums beside these operators.
  const Text a = text(e.args[0]);
  const Text b = text(e.args[1]);
  return {fmt::format("{} {} {}", at(a, kUnary), sign, at(b, kUnary)), level, a.wide || b.wide};
}

ExprPrinter::Text ExprPrinter::shift(const ExprNode& e) {
  const Text a = text(e.args[0]);
  const int64_t bits = dtype_bytes(e.type) * 8;
  const bool left = e.op == Op::kShl;
  if (ir::is_const_int(e.args[1]) && e.args[1]->int_value >= 0) {
    int64_t by = e.args[1]->int_value;
    if (by >= bits && (left || is_unsigned(e.type))) return {integer_literal(e.type, 0), kPrimary};
    by = std::min(by, is_index(e.type) && !a.wide && !left ? 31 : bits - 1);
    const Text amount = {std::to_string(by), kPrimary};
    if (!left) return {fmt::format("{} >> {}", at(a, kUnary), by), kShift, a.wide};
    const std::string_view type = bits == 64 ? "ulong" : "uint";
    Text shifted = {fmt::format("{} << {}", cast_to(type, a).text, by), kShift};
    return bits == 64 && e.type == DType::kU64 ? shifted
           : bits == 64                        ? cast_to("long", shifted)
                                               : wrapped(e.type, shifted);
  }
  const Text by = cast_to("ulong", text(e.args[1]));
  if (left) {
    const std::string arguments =
        fmt::format("{}, {}, {}", cast_to("ulong", a).text, by.text, bits);
    return cast_to(value_type(context_.dialect, e.type),
                   call(context_.functions.use("shift_left"), arguments));
  }
  const bool no_sign = e.type == DType::kU64;
  const std::string_view function = no_sign ? "shift_right_unsigned" : "shift_right";
  return cast_to(value_type(context_.dialect, e.type),
                 call(context_.functions.use(function), a.text + ", " + by.text));
}

ExprPrinter::Text ExprPrinter::negated(const ExprNode& e, const Expr& whole) {
  Text a = text(e.args[0]);
  const auto minus = [&](const Text& t) { return Text{"-" + at(t, kPrimary), kUnary, t.wide}; };
  if (is_float(e.type)) return minus(a);
  if (is_index(e.type) && !ir::has_load(whole)) {
    if (!a.wide && !fits_int(context_.ranges.of(whole))) a = cast_to("long", a);
    return minus(a);
  }
  const bool wide = dtype_bytes(e.type) == 8;
  const Text none = {wide ? "0ul" : "0u", kPrimary};
  const Text difference = infix(none, "-", cast_to(wide ? "ulong" : "uint", a), kSum);
  return is_unsigned(e.type) && !is_narrow(e.type)
             ? difference
             : cast_to(value_type(context_.dialect, e.type), difference);
}

ExprPrinter::Text ExprPrinter::absolute(const ExprNode& e) {
  const Text a = text(e.args[0]);
  if (is_float(e.type))
    return call(math_function(context_.dialect, Op::kAbs, e.type == DType::kF64), a.text);
  if (is_unsigned(e.type)) return a;
  Text result = call(context_.functions.use(fmt::format("abs_{}", integer_name(e.type))), a.text);
  result.wide = is_index(e.type);
  return is_narrow(e.type) ? wrapped(e.type, result) : result;
}

// What is known where a value is chosen holds in its text only.
ExprPrinter::Text ExprPrinter::selected(const ExprNode& e) {
  const Text condition = text(e.args[0]);
  const ir::Ranges::Mark mark = context_.ranges.mark();
  context_.ranges.assume(e.args[0]);
  const Text chosen = text(e.args[1]);
  context_.ranges.reset(mark);
  context_.ranges.assume(e.args[0], false);
  const Text other = text(e.args[2]);
  context_.ranges.reset(mark);
  return {fmt::format("{} ? {} : {}", at(condition, kOr), at(chosen, kTernary + 1),
                      at(other, kTernary)),
          kTernary, chosen.wide || other.wide};
}

ExprPrinter::Text ExprPrinter::converted(const Text& t, DType from, DType to) {
  if (is_float(from) && is_float(to)) return float_converted(t, from, to);
  if (to == DType::kBool) {
    if (from == DType::kBool) return t;
    return {at(t, kEquality) + " != 0", kEquality};
  }
  if (is_float(from)) {
    const std::string_view type = float_name(from);
    if (is_narrow(to)) {
      const int64_t bits = dtype_bytes(to) * 8;
      const bool no_sign = is_unsigned(to);
      const int64_t high = (int64_t{1} << (no_sign ? bits : bits - 1)) - 1;
      const int64_t low = no_sign ? 0 : -high - 1;
      return wrapped(to, call(context_.functions.use(fmt::format("small_of_{}", type)),
                              fmt::format("{}, {}, {}", t.text, low, high)));
    }
    Text result = call(
        context_.functions.use(fmt::format("{}_of_{}", value_type(context_.dialect, to), type)),
        t.text);
    result.wide = is_index(to);
    return result;
  }
  if (is_float(to)) {
    // An integer that float cannot hold is infinite as f16; bf16 is rounded once.
    const bool through_double = to == DType::kBF16 && dtype_bytes(from) > 2;
    const DType first = to == DType::kF64 || through_double ? DType::kF64 : DType::kF32;
    const Text value = cast_to(float_name(first), t);
    return first == to ? value : float_converted(value, first, to);
  }
  if (from == to && !is_index(to)) return t;
  if (is_index(to)) {
    const bool above_int = from == DType::kU32 || from == DType::kU64;
    if (above_int) return cast_to("long", t);
    return {t.text, t.level, from == DType::kI64 && t.wide};
  }
  const bool holds_all = dtype_bytes(from) < dtype_bytes(to) && to != DType::kU32 &&
                         to != DType::kU64 && (!is_unsigned(to) || is_unsigned(from)) &&
                         from != DType::kI64;
  if (holds_all || (from == DType::kBool && is_narrow(to))) return t;
  Text result = cast_to(value_type(context_.dialect, to), t);
  return result;
}

ExprPrinter::Text ExprPrinter::float_converted(const Text& t, DType from, DType to) {
  if (!is_small_float(to)) {
    const bool same = float_name(from) == float_name(to);
    return same ? t : cast_to(float_name(to), t);
  }
  const bool half = to == DType::kF16;
  if (from != DType::kF64)
    return call(context_.functions.use(half ? "round_half" : "round_bfloat"), t.text);
  const Text bits =
      call(context_.functions.use(half ? "half_of_double" : "bfloat_of_double"), t.text);
  return call(context_.functions.use(half ? "float_of_half" : "float_of_bfloat"), bits.text);
}

ExprPrinter::Text ExprPrinter::reinterpreted(const ExprNode& e) {
  const DType from = e.args[0]->type;
  Text bits = text(e.args[0]);
  const auto use = [this](std::string_view name) { return context_.functions.use(name); };
  // First the bits as an integer without sign, unless they are an integer already.
  switch (from) {
    case DType::kF16: bits = call(use("half_of_float"), bits.text); break;
    case DType::kBF16: bits = call(use("bfloat_of_float"), bits.text); break;
    case DType::kF32: bits = call(use("as_uint"), bits.text); break;
    case DType::kF64: bits = call(use("as_ulong"), bits.text); break;
    default: break;
  }
  switch (e.type) {
    case DType::kF16: return call(use("float_of_half"), cast_to("ushort", bits).text);
    case DType::kBF16: return call(use("float_of_bfloat"), cast_to("ushort", bits).text);
    case DType::kF32: return call(use("as_float"), cast_to("uint", bits).text);
    case DType::kF64: return call(use("as_double"), cast_to("ulong", bits).text);
    case DType::kBool: return {at(bits, kEquality) + " != 0", kEquality};
    default: return cast_to(value_type(context_.dialect, e.type), bits);
  }
}

}  // namespace hone::backend::gpu
