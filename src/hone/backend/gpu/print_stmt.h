// backend/gpu/print_stmt.h - prints the statements of a phase as the body of a kernel. Each thread
// runs what stands between loops over threads, and its own iteration of these loops.
#pragma once

#include <string>
#include <vector>

#include "hone/backend/gpu/block_shape.h"
#include "hone/backend/gpu/code_writer.h"
#include "hone/backend/gpu/print_expr.h"
#include "hone/backend/gpu/print_matrix.h"
#include "hone/backend/gpu/print_vectors.h"

namespace hone::backend::gpu {

class StmtPrinter {
 public:
  StmtPrinter(PrintContext& context, Memory& memory, const BlockShape& shape, CodeWriter& out)
      : context_(context),
        memory_(memory),
        shape_(shape),
        out_(out),
        exprs_(context, memory),
        vectors_(context, memory, exprs_, out),
        matrices_(context, memory, exprs_, out) {}
  // Prints the body of a phase; a parallel loop around it is the grid.
  void phase(const ir::StmtNode& body);

 private:
  // `last`: no statement follows the body in its braces.
  void all(const std::vector<ir::Stmt>& body, bool last = true);
  void statement(const ir::StmtNode& s, bool last);
  void alloc(const ir::StmtNode& s, bool last);
  void barrier(const ir::StmtNode& s);
  void separate();
  // Returns whether the block waits somewhere in a loop or under a condition that it runs.
  [[nodiscard]] bool waits_inside(const ir::StmtNode& s) const;
  void loop(const ir::StmtNode& s);
  void counted_loop(const ir::StmtNode& s);
  void thread_loop(const ir::StmtNode& s);
  void unroll_known(const ir::StmtNode& s);
  [[nodiscard]] bool chooses_known_values(const ir::StmtNode& loop) const;
  // Declares the variable of a loop or of a thread with a value.
  void define(const ir::StmtNode& loop, const std::string& value);

  PrintContext& context_;
  Memory& memory_;
  const BlockShape& shape_;
  CodeWriter& out_;
  ExprPrinter exprs_;
  VectorPrinter vectors_;
  MatrixPrinter matrices_;
  bool all_warps_ = false;  // inside a loop over all warps of the block
  int64_t span_ = 0;  // threads of an iteration of the loop over threads around; 0 outside of them
};

}  // namespace hone::backend::gpu
