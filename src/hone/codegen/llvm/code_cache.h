// codegen/llvm/code_cache.h - each program is compiled once in a process: tasks that differ only in
// names, a tuner and the library that it writes, share machine code. What packs weights is compiled
// apart from what runs, since many schedules of a task pack them alike. What was used longest ago
// is dropped when there is too much of it.
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
  // compiling waits for it. Prepare phases are in an object of their own where others run. The
  // symbols are hone_kernel_<the identity of the object's phases>_<phase among them>. That there is
  // too much code is remembered as well; a crash of the compiler is an error and is not.
  [[nodiscard]] Result<ObjectCode> compile(const ir::Program& program,
                                           const target::Target& target);
  struct Counts {
    int64_t compiled = 0, reused = 0;  // objects
    int64_t bytes = 0;                 // kept
  };
  [[nodiscard]] Counts counts() const;

 private:
  [[nodiscard]] Result<ObjectCode> compile_object(const ir::Program& program,
                                                  const target::Target& target);
  struct State;
  std::unique_ptr<State> state_;
};

// That of the process.
[[nodiscard]] CodeCache& code_cache();
// Its compile().
[[nodiscard]] Result<ObjectCode> compile_once(const ir::Program& program,
                                              const target::Target& target);

}  // namespace hone::codegen
