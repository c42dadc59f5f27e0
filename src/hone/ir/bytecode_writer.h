// ir/bytecode_writer.h - the parts of making bytecode that know of no statement: instructions,
// registers, accesses to buffers, and the values of expressions. bytecode.cc adds the statements.
#pragma once

#include <map>
#include <unordered_map>

#include "hone/ir/bytecode.h"

namespace hone::ir {

class BytecodeWriter {
 protected:
  explicit BytecodeWriter(const BytecodeOptions& options) : options_(options) {}

  // Returns the position of the instruction.
  int32_t emit(Instruction instruction);
  [[nodiscard]] int32_t here() const { return static_cast<int32_t>(out_.code.size()); }
  // The first error is the one that counts.
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  int32_t declare(const BufferPtr& buffer);
  int32_t find(const BufferPtr& buffer);

  // Constants and loop registers share the numbers below those of temporaries: constants are even
  // until number_registers() sorts them out.
  int32_t constant(Cell cell);
  int32_t new_loop_register() { return loop_registers_++ * 2 + 1; }
  int32_t new_temporary();
  void number_registers();

  // Returns an access of the statement, whose indices are missing, and one that has been added.
  Access new_access(const BufferPtr& buffer, bool is_store);
  int32_t access(const BufferPtr& buffer, const std::vector<Expr>& indices, bool is_store);

  // Computes e; the register may be shared (leaves).
  int32_t value(const Expr& e);
  void value_into(const Expr& e, int32_t dst);
  // Sets dst to r rounded to a type.
  void round(int32_t r, DType to, int32_t dst);

  BytecodeOptions options_;
  Bytecode out_;
  Status status_;
  std::unordered_map<const Buffer*, int32_t> buffers_;  // in scope; looked up only
  std::unordered_map<const Var*, int32_t> vars_;        // in scope
  // The registers of the expressions that were computed before a loop around.
  std::unordered_map<const ExprNode*, int32_t> invariants_;
  int32_t temporaries_ = 0;  // in use
  int32_t statement_ = -1;
  const StmtNode* source_ = nullptr;  // the statement

 private:
  [[nodiscard]] int32_t resolve(int32_t r) const;
  // Returns the register that holds a leaf or what was computed before a loop, or -1.
  int32_t leaf(const Expr& e);
  // Computes a sum of indices one of which is a product; returns false if `e` is none.
  bool multiply_add(const Expr& e, int32_t dst);
  void convert(int32_t r, DType from, DType to, int32_t dst);

  std::map<int64_t, int32_t> constants_;  // by bits
  int32_t loop_registers_ = 0;
  int32_t max_temporaries_ = 0;
};

}  // namespace hone::ir
