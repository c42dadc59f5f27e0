// codegen/llvm/code_cache.h - each program is compiled once in a process: tasks that differ only in
// names, a tuner and the library that it writes, share machine code. What was used longest ago is
// dropped when there is too much of it.
#pragma once

#include <cstdint>

#include "hone/codegen/llvm/compiler.h"

namespace hone::codegen {

class CodeCache {
 public:
  // `max_bytes`: of object files that are kept.
  explicit CodeCache(int64_t max_bytes);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // codegen::compile() with default options, from any thread: who asks for what another thread is
  // compiling waits for it. The symbols are hone_kernel_<the program's identity>_<phase>. That
  // there is too much code is remembered as well; a crash of the compiler is an error and is not.
  [[nodiscard]] Result<ObjectCode> compile(const ir::Program& program,
                                           const target::Target& target);
  struct Counts {
    int64_t compiled = 0, reused = 0;
    int64_t bytes = 0;  // kept
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// That of the process.
[[nodiscard]] CodeCache& code_cache();
// Its compile().
[[nodiscard]] Result<ObjectCode> compile_once(const ir::Program& program,
                                              const target::Target& target);

}  // namespace hone::codegen
