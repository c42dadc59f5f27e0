// backend/gpu/print_matrix.h - prints matrix statements of warps as CUDA's matrix instructions
// (mma.sync), for the elements that the lane has (matrix_layout.h). Operands of 16 bits come from
// shared memory by ldmatrix where the addresses are provably aligned, others element by element.
#pragma once

#include <string>
#include <vector>

#include "hone/backend/gpu/code_writer.h"
#include "hone/backend/gpu/print_expr.h"
#include "hone/ir/gpu/matrix_box.h"

namespace hone::backend::gpu {

class MatrixPrinter {
 public:
  MatrixPrinter(PrintContext& context, Memory& memory, ExprPrinter& exprs, CodeWriter& out)
      : context_(context), memory_(memory), exprs_(exprs), out_(out) {}
  // Prints a matrix statement as spread_over_lanes() writes it.
  void print(const ir::StmtNode& s);

 private:
  // A variable of the printed code, or 0 in place of that of a loop that runs once.
  struct Count {
    ir::VarPtr var;
    ir::Expr value;
    ir::Ranges::Mark mark;
  };
  Count open_loop(const char* name, int64_t extent);
  void close_loop(const Count& count);

  void depth_step(const ir::StmtNode& s, const ir::Expr& k);
  // Loads the registers of one tile of A: m and k are numbers of tiles.
  void load_a(const ir::Box& box, const std::string& to, const ir::Expr& m, const ir::Expr& k);
  // Loads those of one tile of B or, if `pair`, of two that are next to each other.
  void load_b(const ir::StmtNode& s, const std::string& to, const ir::Expr& k, const ir::Expr& n,
              bool pair);
  void load_elements(const std::string& to, DType type, int registers, const auto& element);
  // Returns the text of the address if ldmatrix can load a tile from it, else nothing. The first
  // `addresses` lanes give one that is used; others repeat theirs, so that none is out of bounds.
  std::string aligned_address(const ir::Box& box, const ir::Expr& row, const ir::Expr& column,
                              int addresses);
  std::string element(const ir::Box& box, const ir::Expr& row, const ir::Expr& column);

  PrintContext& context_;
  Memory& memory_;
  ExprPrinter& exprs_;
  CodeWriter& out_;
  ir::Expr lane_;
};

}  // namespace hone::backend::gpu
