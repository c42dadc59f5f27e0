// backend/cpu/code_cache.h - compiles each program once per process (executable_cache.h). Code that
// packs weights is compiled separately from code that runs, since many schedules of a task pack
// them in the same way.
#pragma once

#include <cstdint>

#include "hone/backend/cpu/compiler.h"
#include "hone/backend/executable_cache.h"

namespace hone::backend::cpu {

class CodeCache {
 public:
  // The cache keeps object files of at most `max_bytes`.
  explicit CodeCache(int64_t max_bytes) : objects_(max_bytes) {}

  // Does what compile() does with default options, from any thread; if another thread is
  // compiling the program already, it waits for it. If a program has both phases that prepare
  // constants and others, the former are in a separate object. The symbols are
  // hone_kernel_<identity of the object's phases>_<number of the phase>. The error of too much code
  // is cached as well; a crash of the compiler is an error that is not.
  [[nodiscard]] Result<Executable> compile(const ir::Program& program, const target::Cpu& target);
  [[nodiscard]] ExecutableCache::Counts counts() const { return objects_.counts(); }

 private:
  [[nodiscard]] Result<Executable> compile_object(const ir::Program& program,
                                                  const target::Cpu& target);
  ExecutableCache objects_;
};

// Returns the cache of the process.
[[nodiscard]] CodeCache& code_cache();

}  // namespace hone::backend::cpu
