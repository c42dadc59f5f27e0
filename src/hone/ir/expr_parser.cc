#include "hone/ir/expr_parser.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "hone/ir/parser.h"
#include "hone/ir/printer.h"

namespace hone::ir {
namespace {

struct Operator {
  std::string_view sign;
  Op op;
  int level;
};
constexpr Operator kOperators[] = {
    {"||", Op::kOr, 1}, {"&&", Op::kAnd, 2}, {"<", Op::kLt, 3},        {"<=", Op::kLe, 3},
    {"==", Op::kEq, 3}, {"!=", Op::kNe, 3},  {"+", Op::kAdd, 4},       {"-", Op::kSub, 4},
    {"*", Op::kMul, 5}, {"/", Op::kDiv, 5},  {"//", Op::kFloorDiv, 5}, {"%", Op::kFloorMod, 5}};
constexpr int kPrimaryLevel = 6;
constexpr int kCompareLevel = 3;

}  // namespace

const ExprParser::Name* ExprParser::find(std::string_view text) const {
  for (auto it = names_.rbegin(); it != names_.rend(); ++it) {
    if (it->text == text) return &*it;
  }
  return nullptr;
}

Result<std::vector<Expr>> ExprParser::indices(const Buffer& buffer) {
  HONE_ASSIGN_OR_RETURN(const Indexed i, indexed(buffer));
  return i.list;
}

Result<ExprParser::Indexed> ExprParser::indexed(const Buffer& buffer) {
  const Token& start = token();
  HONE_RETURN_IF_ERROR(expect("["));
  HONE_ASSIGN_OR_RETURN(const std::vector<Parsed> parsed, list("]"));
  Indexed result;
  for (const Parsed& p : parsed) {
    if (p.e->type != DType::kI64)
      return fail_at(start, fmt::format("an index is {}, expected i64", dtype_name(p.e->type)));
    result.list.push_back(p.e);
    result.depth = std::max(result.depth, p.depth);
  }
  if (parsed.size() != buffer.shape.size()) {
    return fail_at(start, fmt::format("{} has {} dimensions, found {} indices", buffer.name,
                                      buffer.shape.size(), parsed.size()));
  }
  if (result.depth >= kMaxParseDepth) return fail_at(start, "an expression is nested too deeply");
  return result;
}

Result<Expr> ExprParser::expression(DType type) {
  const Token& start = token();
  HONE_ASSIGN_OR_RETURN(const Parsed p, infix(1));
  if (p.e->type != type)
    return fail_at(start, fmt::format("expected a value of type {}, found {}", dtype_name(type),
                                      dtype_name(p.e->type)));
  return p.e;
}

Result<ExprParser::Parsed> ExprParser::built(const Token& where, Op op,
                                             const std::vector<Parsed>& args) {
  std::vector<Expr> operands;
  int depth = 0;
  for (const Parsed& p : args) {
    operands.push_back(p.e);
    depth = std::max(depth, p.depth);
  }
  const Status legal = check_operands(op, operands);
  if (!legal.ok()) return at(where, legal);
  if (depth >= kMaxParseDepth) return fail_at(where, "an expression is nested too deeply");
  return Parsed{make(op, std::move(operands)), depth + 1};
}

Result<ExprParser::Parsed> ExprParser::infix(int level) {
  if (level == kPrimaryLevel) return primary();
  HONE_ASSIGN_OR_RETURN(Parsed left, infix(level + 1));
  while (true) {
    const Operator* found = nullptr;
    for (const Operator& o : kOperators) {
      if (o.level == level && token().kind == Token::kSign && token().text == o.sign) found = &o;
    }
    if (!found) return left;
    const Token& sign = token();
    ++at_;
    HONE_ASSIGN_OR_RETURN(Parsed right, infix(level + 1));
    HONE_ASSIGN_OR_RETURN(left, built(sign, found->op, {left, right}));
    if (level == kCompareLevel) return left;
  }
}

Result<std::vector<ExprParser::Parsed>> ExprParser::list(std::string_view close) {
  std::vector<Parsed> result;
  if (++nesting_ > kMaxParseNesting) return fail_at(token(), "an expression is nested too deeply");
  while (!accept(close)) {
    if (!result.empty()) HONE_RETURN_IF_ERROR(expect(","));
    HONE_ASSIGN_OR_RETURN(Parsed p, infix(1));
    result.push_back(std::move(p));
  }
  --nesting_;
  return result;
}

Result<ExprParser::Parsed> ExprParser::primary() {
  const Token& t = token();
  if (accept("(")) {
    HONE_ASSIGN_OR_RETURN(std::vector<Parsed> inner, list(")"));
    if (inner.size() != 1) return fail_at(t, "expected one expression in parentheses");
    return inner[0];
  }
  if (accept("!")) {
    if (++nesting_ > kMaxParseNesting) return fail_at(t, "an expression is nested too deeply");
    HONE_ASSIGN_OR_RETURN(const Parsed inner, primary());
    --nesting_;
    return built(t, Op::kNot, {inner});
  }
  if (accept("true")) return Parsed{constant_bool(true), 1};
  if (accept("false")) return Parsed{constant_bool(false), 1};
  const bool is_number =
      t.kind == Token::kInteger || t.kind == Token::kReal || is("-") || is("inf") || is("nan");
  if (is_number) return number();
  if (t.kind != Token::kWord) return unexpected("an expression");
  if (is_reserved(t.text)) return call();
  const Name* n = find(t.text);
  if (!n) return fail_at(t, fmt::format("'{}' is not declared", t.text));
  ++at_;
  if (n->var) return Parsed{variable(n->var), 1};
  const BufferPtr buffer = n->buffer;
  HONE_ASSIGN_OR_RETURN(Indexed index, indexed(*buffer));
  return Parsed{load(buffer, std::move(index.list)), index.depth + 1};
}

Result<ExprParser::Parsed> ExprParser::call() {
  const Token& t = token();
  ++at_;
  HONE_RETURN_IF_ERROR(expect("("));
  HONE_ASSIGN_OR_RETURN(const std::vector<Parsed> args, list(")"));
  if (const std::optional<DType> type = parse_dtype(t.text)) {
    if (args.size() != 1) return fail_at(t, "a cast takes one value");
    return Parsed{cast(*type, args[0].e), args[0].depth + 1};
  }
  if (const auto type = t.text.starts_with("as_") ? parse_dtype(t.text.substr(3)) : std::nullopt) {
    if (args.size() != 1 || dtype_bytes(args[0].e->type) != dtype_bytes(*type))
      return fail_at(t, fmt::format("{} takes one value of its width", t.text));
    return Parsed{bit_cast(*type, args[0].e), args[0].depth + 1};
  }
  for (int op = static_cast<int>(Op::kAdd); op < kNumOps; ++op) {
    if (op_info(static_cast<Op>(op)).name == t.text) return built(t, static_cast<Op>(op), args);
  }
  return fail_at(t, fmt::format("'{}' is not a function", t.text));
}

Result<ExprParser::Parsed> ExprParser::number() {
  const bool negative = accept("-");
  const Token& t = token();
  const bool is_word = is("inf") || is("nan");
  if (t.kind != Token::kInteger && t.kind != Token::kReal && !is_word)
    return unexpected("a number");
  ++at_;
  std::optional<DType> type;
  // The colon before the extent of a box is none of the number's.
  if (is(":") && tokens_[at_ + 1].kind == Token::kWord) {
    ++at_;
    type = token().kind == Token::kWord ? parse_dtype(token().text) : std::nullopt;
    if (!type || *type == DType::kBool) return unexpected("an element type of numbers");
    ++at_;
  }
  if (t.kind == Token::kInteger) {
    if (type && is_float(*type)) return fail_at(t, "a float needs a decimal point or an exponent");
    uint64_t magnitude = 0;
    const auto parsed = std::from_chars(t.text.data(), t.text.data() + t.text.size(), magnitude);
    const uint64_t limit =
        static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
    if (parsed.ec != std::errc() || magnitude > limit)
      return fail_at(t, fmt::format("{} is too large", t.text));
    return Parsed{constant_int(static_cast<int64_t>(negative ? 0 - magnitude : magnitude),
                               type.value_or(DType::kI64)),
                  1};
  }
  if (type && !is_float(*type)) return fail_at(t, fmt::format("{} is not an integer", t.text));
  double value = t.text == "inf" ? std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::quiet_NaN();
  if (!is_word) {
    // Read in the precision that it was written in, so that it is rounded once.
    const char* end = t.text.data() + t.text.size();
    float single = 0;
    const bool is_single = type.value_or(DType::kF32) == DType::kF32;
    const auto parsed = is_single ? std::from_chars(t.text.data(), end, single)
                                  : std::from_chars(t.text.data(), end, value);
    if (parsed.ec != std::errc()) return fail_at(t, fmt::format("{} is out of range", t.text));
    if (is_single) value = static_cast<double>(single);
  }
  return Parsed{constant_float(negative ? -value : value, type.value_or(DType::kF32)), 1};
}

}  // namespace hone::ir
