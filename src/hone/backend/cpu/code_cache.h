// backend/cpu/code_cache.h - compiles each program once per process: tasks that differ only in
// names, and a tuner and the library that it writes, share machine code. Code that packs weights is
// compiled separately from code that runs, since many schedules of a task pack them in the same
// way. If there is too much code, what was used longest ago is dropped. Executables share their
// code with the cache.
#pragma once

#include <cstdint>

#include "hone/backend/cpu/compiler.h"

namespace hone::backend::cpu {

class CodeCache {
 public:
  // The cache keeps object files of at most `max_bytes`.
  explicit CodeCache(int64_t max_bytes);
  ~CodeCache();
  CodeCache(const CodeCache&) = delete;
  CodeCache& operator=(const CodeCache&) = delete;

  // Does what compile() does with default options, from any thread; if another thread is
  // compiling the program already, it waits for it. If a program has both phases that prepare
  // constants and others, the former are in a separate object. The symbols are
  // hone_kernel_<identity of the object's phases>_<number of the phase>. The error of too much code
  // is cached as well; a crash of the compiler is an error that is not.
  [[nodiscard]] Result<Executable> compile(const ir::Program& program, const target::Cpu& target);
  struct Counts {
    int64_t compiled = 0, reused = 0;  // numbers of objects
    int64_t bytes = 0;                 // size of the objects in the cache
  };
  [[nodiscard]] Counts counts() const;

 private:
  [[nodiscard]] Result<Executable> compile_object(const ir::Program& program,
                                                  const target::Cpu& target);
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the cache of the process.
[[nodiscard]] CodeCache& code_cache();

}  // namespace hone::backend::cpu
