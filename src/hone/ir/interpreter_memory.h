// ir/interpreter_memory.h - the buffers of a program that the interpreter runs. What nobody wrote
// holds garbage: NaN, or an integer that no program expects.
#pragma once

#include <span>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/bytecode.h"
#include "hone/ir/interpreter.h"

namespace hone::ir {

struct Storage {
  BufferPtr buffer;
  std::vector<Cell> cells;
};

class Memory {
 public:
  Memory(const Bytecode& code, const RunOptions& options) : code_(code), options_(options) {}

  // Makes the buffers and fills those of the parameters that are given from the arguments.
  [[nodiscard]] Status fill(const Program& program, std::span<Tensor> args);
  // Copies what the program wrote to the arguments.
  void copy_results(const Program& program, std::span<Tensor> args) const;
  // Calls a function of RunOptions::externs on copies of its buffers.
  [[nodiscard]] Status call(const ExternCall& call);
  void fill_with_garbage(int32_t buffer);

  [[nodiscard]] Storage& operator[](int32_t buffer) { return storage_[buffer]; }
  [[nodiscard]] const Storage& operator[](int32_t buffer) const { return storage_[buffer]; }

 private:
  [[nodiscard]] Status allocate();

  const Bytecode& code_;
  const RunOptions& options_;
  std::vector<Storage> storage_;
};

}  // namespace hone::ir
