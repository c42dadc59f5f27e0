// backend/cpu/compiler.h - compiles a loop program to machine code.
//
// Every phase becomes one function of type hone_kernel (runtime/kernel_abi.h). args[i] is
// the buffer of the program's i-th param, 64-byte aligned; buffers do not overlap. Multiplication
// by a known 0, 1 or -1 (Buffer::values) is folded, so 0 * inf is 0 there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hone/backend/executable.h"
#include "hone/base/status.h"
#include "hone/ir/stmt.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

// The loops on lanes that a phase has, of the kinds in target/loop_plan.h.
struct EmittedLoops {
  int squares = 0;         // number of squares that are transposed in registers
  int permuted_loads = 0;  // number of vectors that are loaded by a permutation
  int width = 1;           // lanes of the widest vector of a loop
};

struct ObjectCode {
  std::string object;               // an ELF relocatable file
  std::vector<EntryPoint> phases;   // in the order of the program
  std::vector<EmittedLoops> loops;  // one per phase
  int64_t scratch_bytes = 0;        // per thread; the maximum over the phases
  int64_t text_bytes = 0;           // size of the machine code
  // Hash of the object that does not depend on the symbols' prefix, if that has the same length.
  uint64_t content = 0;
  CompileCost cost;
  std::string assembly;  // set with CompileOptions::keep_assembly
};

struct CompileOptions {
  std::string symbol_prefix = "hone_kernel";  // phase i is named <prefix>_<i>
  bool keep_assembly = false;
  // The most instructions before LLVM's passes, whose time depends on them; more is an error. The
  // most that hone_compile_times found in the kernels of models/ is 11,000.
  int64_t max_instructions = 24'000;
  int64_t max_statements = 8'000;  // per phase after unrolling, so that emitting is bounded as well
  // Alignment of the buffers in args in bytes, a power of two. Only tests use less than the ABI's,
  // so that a buffer can end at the end of its page.
  int64_t argument_alignment = 64;
};

// Compiles a program. It may be called from any thread.
[[nodiscard]] Result<ObjectCode> compile(const ir::Program& program, const target::Cpu& target,
                                         const CompileOptions& options = {});

// Returns how many vector registers the register tile of the program needs: those of kRegister
// buffers that live at the same time, and two more for operands.
[[nodiscard]] int registers_needed(const ir::Program& program, const target::Cpu& target);

// An object that is linked into this process. Its memory is freed when it is destroyed. External
// symbols are those of the process.
class LoadedCode {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LoadedCode>> load(std::string_view object);
  // Loads both objects of a program. The second one may be empty.
  [[nodiscard]] static Result<std::unique_ptr<LoadedCode>> load(std::string_view object,
                                                                std::string_view prepare_object);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  // Returns null if there is no such symbol.
  [[nodiscard]] void* symbol(const std::string& name) const;

 private:
  struct State;
  explicit LoadedCode(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::unique_ptr<LoadedCode> prepare_;  // may be null
};

}  // namespace hone::backend::cpu
