// codegen/llvm/compiler.h - machine code from a loop program.
//
// Every phase becomes one function of type hone_kernel (codegen/runtime/kernel_abi.h); args[i] is
// the buffer of the program's i-th param, 64-byte aligned. The buffers of a program are distinct
// memory. Multiplication by a known 0, 1 or -1 (Buffer::values) folds, so 0 * inf is 0 there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/ir/stmt.h"
#include "hone/target/target.h"

namespace hone::codegen {

struct Phase {
  std::string symbol;
  int64_t num_tiles = 1;
  bool prepare = false;
};

// What a compilation took.
struct CompileCost {
  int64_t instructions = 0, optimized = 0;      // LLVM's, before and after its passes
  double emit = 0, optimize = 0, generate = 0;  // CPU seconds of the thread
  [[nodiscard]] double seconds() const { return emit + optimize + generate; }
};

struct ObjectCode {
  std::string object;          // an ELF relocatable file
  std::string prepare_object;  // of the prepare phases, if the other one is without them
  std::vector<Phase> phases;   // as in the program
  int64_t scratch_bytes = 0;   // of each thread; the most that a phase needs
  int64_t text_bytes = 0;      // machine code
  uint64_t content = 0;        // hash of the object, whichever its symbols' prefix of that length
  CompileCost cost;
  std::string assembly;  // if CompileOptions::keep_assembly
};

struct CompileOptions {
  std::string symbol_prefix = "hone_kernel";  // phase i is <prefix>_<i>
  bool keep_assembly = false;
  // Of code before LLVM's passes see it, whose time it decides; more is an error. The most that
  // hone_compile_times met in the kernels of models/ is 11,000.
  int64_t max_instructions = 24'000;
  int64_t max_statements = 8'000;  // after unrolling, a phase, so that emitting is bounded as well
  // Of the buffers in args, bytes, a power of two; less than the ABI's only for tests in which a
  // buffer ends where its page does.
  int64_t argument_alignment = 64;
};

// May be called from any thread.
[[nodiscard]] Result<ObjectCode> compile(const ir::Program& program, const target::Target& target,
                                         const CompileOptions& options = {});

// Vector registers that the register tile of the program takes: the kRegister buffers that live at
// the same time, and two more for operands.
[[nodiscard]] int registers_needed(const ir::Program& program, const target::Target& target);

// An object linked into this process; the memory is freed with the value. External symbols come
// from the process.
class LoadedCode {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LoadedCode>> load(std::string_view object);
  // All that there is of a program: the second one may be empty.
  [[nodiscard]] static Result<std::unique_ptr<LoadedCode>> load(std::string_view object,
                                                                std::string_view prepare_object);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  // Null if there is none.
  [[nodiscard]] void* symbol(const std::string& name) const;

 private:
  struct State;
  explicit LoadedCode(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::unique_ptr<LoadedCode> prepare_;  // may be null
};

}  // namespace hone::codegen
