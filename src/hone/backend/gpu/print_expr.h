// backend/gpu/print_expr.h - prints expressions as C that computes what the interpreter does, but
// that floats are rounded at each step. An index (i64) is computed as int where the ranges of
// variables prove that nothing is lost, else as long.
#pragma once

#include <string>
#include <vector>

#include "hone/backend/gpu/print_context.h"
#include "hone/backend/gpu/print_memory.h"

namespace hone::backend::gpu {

class ExprPrinter {
 public:
  ExprPrinter(PrintContext& context, Memory& memory) : context_(context), memory_(memory) {}
  // Returns the text of an expression that stands alone.
  [[nodiscard]] std::string print(const ir::Expr& e) { return text(e).text; }
  // Returns the text of an operand of C's multiplication.
  [[nodiscard]] std::string factor(const ir::Expr& e);
  // Returns the text of an element as it is in memory: X[i * 4 + j].
  [[nodiscard]] std::string element(const ir::BufferPtr& buffer,
                                    const std::vector<ir::Expr>& indices);
  // Returns the text of a value as it is stored to memory of its type.
  [[nodiscard]] std::string stored(const ir::Expr& value);
  // Returns the text of two 16-bit floats of one type as a word of CUDA's memory, the first in
  // its low half.
  [[nodiscard]] std::string stored_pair(const ir::Expr& first, const ir::Expr& second);

 private:
  // `level` is the precedence of the outermost operator, `wide` whether an i64 is long, not int.
  struct Text {
    std::string text;
    int level;
    bool wide = false;
  };

  // A 16-bit float: its bits (kU16), or a float or double that the store rounds.
  struct Unrounded {
    std::string text;
    DType type;
  };

  Text text(const ir::Expr& e);
  Unrounded unrounded(const ir::Expr& value);
  std::string at(const Text& t, int level) const;
  Text loaded(const ir::ExprNode& e);
  Text arithmetic(const ir::ExprNode& e, const ir::Expr& whole);
  Text index_arithmetic(const ir::ExprNode& e, const ir::Expr& whole);
  Text division(const ir::ExprNode& e);
  Text min_max(const ir::ExprNode& e);
  Text shift(const ir::ExprNode& e);
  Text bitwise(const ir::ExprNode& e);
  Text negated(const ir::ExprNode& e, const ir::Expr& whole);
  Text absolute(const ir::ExprNode& e);
  Text selected(const ir::ExprNode& e);
  Text converted(const Text& t, DType from, DType to);
  Text float_converted(const Text& t, DType from, DType to);
  Text reinterpreted(const ir::ExprNode& e);
  Text infix(const Text& a, const char* sign, const Text& b, int level) const;
  Text call(std::string_view function, const std::string& arguments);
  Text cast_to(std::string_view type, const Text& t) const;
  Text wrapped(DType type, Text t) const;

  PrintContext& context_;
  Memory& memory_;
};

}  // namespace hone::backend::gpu
