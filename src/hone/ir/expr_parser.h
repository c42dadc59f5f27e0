// ir/expr_parser.h - parses tokens, names and expressions; ir/parser.cc adds statements.
#pragma once

#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/lexer.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

class ExprParser {
 protected:
  explicit ExprParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  struct Parsed {
    Expr e;
    int depth = 0;
  };
  struct Indexed {
    std::vector<Expr> list;
    int depth = 0;
  };
  struct Name {
    std::string_view text;
    VarPtr var;
    BufferPtr buffer;
  };

  // ---- tokens ----
  const Token& token() const { return tokens_[at_]; }
  bool is(std::string_view text) const {
    return token().text == text && (token().kind == Token::kWord || token().kind == Token::kSign);
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  Status expect(std::string_view text) {
    if (accept(text)) return ok_status();
    return unexpected(fmt::format("'{}'", text));
  }
  Status fail_at(const Token& t, std::string_view message) const {
    return invalid("line {}, column {}: {}", t.line, t.column, message);
  }
  Status unexpected(std::string_view expected) const {
    const bool end = token().kind == Token::kEnd;
    return fail_at(token(),
                   fmt::format("expected {} but found {}", expected,
                               end ? "the end of the text" : fmt::format("'{}'", token().text)));
  }
  Status at(const Token& t, const Status& status) const { return fail_at(t, status.message()); }

  // ---- expressions ----
  const Name* find(std::string_view text) const;
  // Parses the indices of an access.
  Result<std::vector<Expr>> indices(const Buffer& buffer);
  Result<Indexed> indexed(const Buffer& buffer);
  Result<Expr> expression(DType type);
  Result<Parsed> built(const Token& where, Op op, const std::vector<Parsed>& args);
  Result<Parsed> infix(int level);
  Result<std::vector<Parsed>> list(std::string_view close);
  Result<Parsed> primary();
  Result<Parsed> call();
  Result<Parsed> number();

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  std::vector<Name> names_;  // names in scope, innermost last
};

}  // namespace hone::ir
