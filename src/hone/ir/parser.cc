#include "hone/ir/parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "hone/ir/expr_parser.h"
#include "hone/ir/printer.h"

namespace hone::ir {
namespace {

constexpr int64_t kMaxWarps = 64;  // of a role; a block has 32 at most today

class Parser : ExprParser {
 public:
  explicit Parser(std::vector<Token> tokens) : ExprParser(std::move(tokens)) {}

  Result<Program> program() {
    Program p;
    HONE_RETURN_IF_ERROR(expect("program"));
    HONE_ASSIGN_OR_RETURN(p.name, label());
    HONE_RETURN_IF_ERROR(expect("{"));
    while (!is("phase") && !is("}")) {
      HONE_ASSIGN_OR_RETURN(Param param, this->param());
      p.params.push_back(std::move(param));
    }
    while (accept("phase")) {
      Phase phase;
      phase.prepare = accept("prepare");
      HONE_ASSIGN_OR_RETURN(std::vector<Stmt> stmts, body());
      phase.body = make_block(std::move(stmts));
      p.phases.push_back(std::move(phase));
    }
    HONE_RETURN_IF_ERROR(expect("}"));
    if (token().kind != Token::kEnd) return unexpected("the end of the text");
    return p;
  }

 private:
  // ---- names ----
  Result<std::string> label() {  // an identifier or a string
    const Token& t = token();
    if (t.kind == Token::kWord && !is_reserved(t.text)) {
      ++at_;
      return std::string(t.text);
    }
    if (t.kind != Token::kString) return unexpected("a name");
    ++at_;
    std::string text;
    for (size_t i = 0; i < t.text.size(); ++i) {
      if (t.text[i] != '\\') {
        text += t.text[i];
      } else if (++i < t.text.size() && t.text[i] == 'x') {
        int value = -1;
        const char* digits = t.text.data() + i + 1;
        if (i + 2 >= t.text.size() ||
            std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2 || value < 0) {
          return fail_at(t, "'\\x' needs two hexadecimal digits");
        }
        text += static_cast<char>(value);
        i += 2;
      } else if (i < t.text.size() && (t.text[i] == '"' || t.text[i] == '\\')) {
        text += t.text[i];
      } else {
        return fail_at(t, "an unknown escape in a string");
      }
    }
    return text;
  }
  Result<std::string_view> new_name() {
    const Token& t = token();
    if (t.kind != Token::kWord) return unexpected("a name");
    if (is_reserved(t.text)) return fail_at(t, fmt::format("'{}' is a reserved word", t.text));
    for (const Name& n : names_) {
      if (n.text == t.text) return fail_at(t, fmt::format("'{}' is declared already", t.text));
    }
    ++at_;
    return t.text;
  }
  Result<BufferPtr> buffer_name() {
    const Token& t = token();
    if (t.kind != Token::kWord) return unexpected("a buffer");
    const Name* n = find(t.text);
    if (!n || !n->buffer) return fail_at(t, fmt::format("'{}' is not a buffer", t.text));
    ++at_;
    return n->buffer;
  }

  // ---- declarations ----
  Result<Param> param() {
    for (int r = 0; r <= static_cast<int>(Role::kOutput); ++r) {
      if (!accept(role_name(static_cast<Role>(r)))) continue;
      HONE_ASSIGN_OR_RETURN(const BufferPtr declared, declaration(Scope::kGlobal, true));
      Param made{declared, static_cast<Role>(r)};
      if (made.role == Role::kInput && accept("zeros")) {
        HONE_ASSIGN_OR_RETURN(made.zeros, zeros(*declared));
      }
      return made;
    }
    return unexpected("a parameter (input, constant, packed, workspace or output), 'phase' or '}'");
  }
  // Param::zeros: {LOW, ..., HIGH, ...}
  Result<std::vector<int64_t>> zeros(const Buffer& buffer) {
    const Token& start = token();
    std::vector<int64_t> list;
    HONE_RETURN_IF_ERROR(expect("{"));
    while (!accept("}")) {
      if (!list.empty()) HONE_RETURN_IF_ERROR(expect(","));
      HONE_ASSIGN_OR_RETURN(list.emplace_back(), size());
    }
    const size_t rank = buffer.shape.size();
    bool fits = list.size() == 2 * rank;
    for (size_t d = 0; fits && d < rank; ++d)
      fits = list[d] <= buffer.shape[d] && list[rank + d] <= buffer.shape[d] - list[d];
    if (!fits)
      return fail_at(
          start, fmt::format("expected the zeros before and after each of {} dimensions", rank));
    return list;
  }
  Result<int64_t> size() {
    const Token& t = token();
    if (t.kind != Token::kInteger) return unexpected("an integer");
    int64_t value = 0;
    const auto parsed = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
    if (parsed.ec != std::errc()) return fail_at(t, fmt::format("{} is too large", t.text));
    ++at_;
    return value;
  }
  // NAME: TYPE[SHAPE] (= {VALUES}); declares the name.
  Result<BufferPtr> declaration(Scope scope, bool may_have_values) {
    const Token& start = token();
    HONE_ASSIGN_OR_RETURN(const std::string_view name, new_name());
    HONE_RETURN_IF_ERROR(expect(":"));
    const std::optional<DType> type =
        token().kind == Token::kWord ? parse_dtype(token().text) : std::nullopt;
    if (!type) return unexpected("an element type");
    ++at_;
    HONE_RETURN_IF_ERROR(expect("["));
    Buffer buffer{std::string(name), *type, {}, scope, {}};
    int64_t elements = 1;
    while (!accept("]")) {
      if (!buffer.shape.empty()) HONE_RETURN_IF_ERROR(expect(","));
      HONE_ASSIGN_OR_RETURN(const int64_t d, size());
      if (__builtin_mul_overflow(elements, std::max<int64_t>(d, 1), &elements))
        return fail_at(start, fmt::format("'{}' is too large", name));
      buffer.shape.push_back(d);
    }
    if (may_have_values && accept("=")) {
      HONE_RETURN_IF_ERROR(expect("{"));
      while (!accept("}")) {
        if (!buffer.values.empty()) HONE_RETURN_IF_ERROR(expect(","));
        HONE_ASSIGN_OR_RETURN(const Parsed value, primary());
        if (value.e->op != Op::kFloat && value.e->op != Op::kInt) return unexpected("a number");
        buffer.values.push_back(static_cast<float>(value.e->op == Op::kFloat
                                                       ? value.e->float_value
                                                       : static_cast<double>(value.e->int_value)));
      }
      if (static_cast<int64_t>(buffer.values.size()) != buffer.num_elements()) {
        return fail_at(start, fmt::format("'{}' has {} values, expected {}", name,
                                          buffer.values.size(), buffer.num_elements()));
      }
    }
    auto declared = std::make_shared<const Buffer>(std::move(buffer));
    names_.push_back({name, nullptr, declared});
    return BufferPtr(declared);
  }

  // ---- statements ----
  Result<std::vector<Stmt>> body() {
    HONE_RETURN_IF_ERROR(expect("{"));
    if (++nesting_ > kMaxParseNesting) return fail_at(token(), "blocks are nested too deeply");
    const size_t scope = names_.size();
    std::vector<Stmt> stmts;
    while (!accept("}")) {
      HONE_ASSIGN_OR_RETURN(Stmt s, statement());
      stmts.push_back(std::move(s));
    }
    names_.resize(scope);
    --nesting_;
    return stmts;
  }

  Result<Stmt> statement() {
    for (int k = 0; k < kNumForKinds; ++k) {
      if (accept(for_kind_name(static_cast<ForKind>(k)))) return loop(static_cast<ForKind>(k));
    }
    if (accept("if")) {
      HONE_ASSIGN_OR_RETURN(const Expr condition, expression(DType::kBool));
      HONE_ASSIGN_OR_RETURN(std::vector<Stmt> stmts, body());
      return make_if(condition, std::move(stmts));
    }
    if (accept("alloc")) return alloc();
    if (token().kind == Token::kWord && is_gpu_statement(token().text)) return gpu_statement();
    const bool far = accept("prefetch_l2");
    if (far || accept("prefetch")) {
      HONE_ASSIGN_OR_RETURN(const BufferPtr buffer, buffer_name());
      HONE_ASSIGN_OR_RETURN(std::vector<Expr> index, indices(*buffer));
      return make_prefetch(buffer, std::move(index), far ? 2 : 1);
    }
    if (accept("extern")) {
      HONE_ASSIGN_OR_RETURN(std::string function, label());
      HONE_RETURN_IF_ERROR(expect("("));
      std::vector<BufferPtr> buffers;
      while (!accept(")")) {
        if (!buffers.empty()) HONE_RETURN_IF_ERROR(expect(","));
        HONE_ASSIGN_OR_RETURN(BufferPtr buffer, buffer_name());
        buffers.push_back(std::move(buffer));
      }
      return make_extern(std::move(function), std::move(buffers));
    }
    if (token().kind != Token::kWord || is_reserved(token().text))
      return unexpected("a statement or '}'");
    HONE_ASSIGN_OR_RETURN(const BufferPtr buffer, buffer_name());
    HONE_ASSIGN_OR_RETURN(std::vector<Expr> index, indices(*buffer));
    HONE_RETURN_IF_ERROR(expect("="));
    HONE_ASSIGN_OR_RETURN(const Expr value, expression(buffer->dtype));
    return make_store(buffer, std::move(index), value);
  }

  // ---- statements of GPUs ----
  static bool is_gpu_statement(std::string_view word) {
    constexpr std::string_view kFirst[] = {"async", "barrier", "commit", "wait", "matrix",
                                           "copy",  "arrive",  "await",  "roles"};
    return std::find(std::begin(kFirst), std::end(kFirst), word) != std::end(kFirst);
  }
  Result<Stmt> gpu_statement() {
    if (accept("barrier")) {
      // The word may also begin a loop behind a barrier of the block: warp w in 0..4
      const bool is_loop =
          is("warp") && tokens_[at_ + 1].kind == Token::kWord && tokens_[at_ + 2].text == "in";
      return make_barrier(!is_loop && accept("warp"));
    }
    if (accept("commit")) return make_commit();
    if (accept("wait")) {
      HONE_ASSIGN_OR_RETURN(const int64_t count, size());
      return make_wait(count);
    }
    if (accept("copy")) return box_copy();
    if (accept("roles")) return roles();
    if (accept("arrive")) {
      HONE_ASSIGN_OR_RETURN(const BufferPtr signal, buffer_name());
      HONE_ASSIGN_OR_RETURN(std::vector<Expr> index, indices(*signal));
      return make_arrive(signal, std::move(index));
    }
    if (accept("await")) {
      HONE_ASSIGN_OR_RETURN(const BufferPtr signal, buffer_name());
      HONE_ASSIGN_OR_RETURN(std::vector<Expr> index, indices(*signal));
      HONE_RETURN_IF_ERROR(expect(","));
      HONE_ASSIGN_OR_RETURN(const Expr parity, expression(DType::kI64));
      return make_await(signal, std::move(index), parity);
    }
    const bool async = accept("async");
    if (accept("matrix")) return matrix(async);
    HONE_ASSIGN_OR_RETURN(const BufferPtr buffer, buffer_name());
    HONE_ASSIGN_OR_RETURN(std::vector<Expr> index, indices(*buffer));
    HONE_RETURN_IF_ERROR(expect("="));
    HONE_ASSIGN_OR_RETURN(const Expr value, expression(buffer->dtype));
    return make_async_store(buffer, std::move(index), value);
  }
  // (transposed) NAME[FROM : EXTENT, ...]
  Result<Box> box() {
    Box made;
    made.transposed = accept("transposed");
    HONE_ASSIGN_OR_RETURN(made.buffer, buffer_name());
    const Token& start = token();
    HONE_RETURN_IF_ERROR(expect("["));
    while (!accept("]")) {
      if (!made.indices.empty()) HONE_RETURN_IF_ERROR(expect(","));
      HONE_ASSIGN_OR_RETURN(Expr from, expression(DType::kI64));
      HONE_RETURN_IF_ERROR(expect(":"));
      HONE_ASSIGN_OR_RETURN(made.extents.emplace_back(), size());
      made.indices.push_back(std::move(from));
    }
    if (made.indices.size() != made.buffer->shape.size()) {
      return fail_at(start,
                     fmt::format("{} has {} dimensions, found {} in the box", made.buffer->name,
                                 made.buffer->shape.size(), made.indices.size()));
    }
    return made;
  }
  // matrix D += A * B
  Result<Stmt> matrix(bool async) {
    HONE_ASSIGN_OR_RETURN(Box d, box());
    HONE_RETURN_IF_ERROR(expect("+"));
    HONE_RETURN_IF_ERROR(expect("="));
    HONE_ASSIGN_OR_RETURN(Box a, box());
    HONE_RETURN_IF_ERROR(expect("*"));
    HONE_ASSIGN_OR_RETURN(Box b, box());
    return make_matrix(std::move(d), std::move(a), std::move(b), async);
  }
  // copy DESTINATION = SOURCE, SIGNAL
  Result<Stmt> box_copy() {
    HONE_ASSIGN_OR_RETURN(Box to, box());
    HONE_RETURN_IF_ERROR(expect("="));
    HONE_ASSIGN_OR_RETURN(Box from, box());
    HONE_RETURN_IF_ERROR(expect(","));
    HONE_ASSIGN_OR_RETURN(const BufferPtr signal, buffer_name());
    HONE_ASSIGN_OR_RETURN(std::vector<Expr> index, indices(*signal));
    return make_box_copy(std::move(to), std::move(from), signal, std::move(index));
  }
  // roles { warp COUNT { } ... }
  Result<Stmt> roles() {
    std::vector<int> warps;
    std::vector<Stmt> bodies;
    HONE_RETURN_IF_ERROR(expect("{"));
    while (!accept("}")) {
      HONE_RETURN_IF_ERROR(expect("warp"));
      const Token& count = token();
      HONE_ASSIGN_OR_RETURN(const int64_t n, size());
      if (n < 1 || n > kMaxWarps)
        return fail_at(count, fmt::format("expected 1 to {} warps", kMaxWarps));
      warps.push_back(static_cast<int>(n));
      HONE_ASSIGN_OR_RETURN(std::vector<Stmt> stmts, body());
      bodies.push_back(make_block(std::move(stmts)));
    }
    return make_roles(std::move(warps), std::move(bodies));
  }

  Result<Stmt> loop(ForKind kind) {
    HONE_ASSIGN_OR_RETURN(const std::string_view name, new_name());
    HONE_RETURN_IF_ERROR(expect("in"));
    HONE_ASSIGN_OR_RETURN(const Expr min, expression(DType::kI64));
    HONE_RETURN_IF_ERROR(expect(".."));
    const bool relative = accept("+");
    const Token& end_token = token();
    HONE_ASSIGN_OR_RETURN(Expr extent, expression(DType::kI64));
    if (!relative) {
      int64_t length = 0;
      if (!is_const_int(min) || !is_const_int(extent))
        return fail_at(end_token, "a range with variable ends is written 'from..+length'");
      if (__builtin_sub_overflow(extent->int_value, min->int_value, &length) || length < 0)
        return fail_at(end_token, "the range ends before it begins");
      extent = constant(length);
    }
    const bool peel = accept("peel");
    auto var = make_var(std::string(name));
    names_.push_back({name, var, nullptr});
    HONE_ASSIGN_OR_RETURN(std::vector<Stmt> stmts, body());
    names_.pop_back();
    return make_for(std::move(var), min, extent, kind, std::move(stmts), peel);
  }

  Result<Stmt> alloc() {
    for (int s = 0; s < kNumScopes; ++s) {
      if (!accept(scope_name(static_cast<Scope>(s)))) continue;
      HONE_ASSIGN_OR_RETURN(const BufferPtr buffer, declaration(static_cast<Scope>(s), false));
      int64_t arrivals = 0;
      if (buffer->scope == Scope::kSignal) {
        HONE_RETURN_IF_ERROR(expect("arrivals"));
        HONE_ASSIGN_OR_RETURN(arrivals, size());
      }
      HONE_ASSIGN_OR_RETURN(std::vector<Stmt> stmts, body());
      names_.pop_back();
      if (buffer->scope == Scope::kSignal) return make_signals(buffer, arrivals, std::move(stmts));
      return make_alloc(buffer, std::move(stmts));
    }
    return unexpected("global, thread, stack, register, shared, fragment or signal");
  }
};

}  // namespace

Result<Program> parse_program(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(text));
  return Parser(std::move(tokens)).program();
}

}  // namespace hone::ir
