// backend/executable_cache.h - compiles each program once in a process, for tasks that differ only
// in names and for a tuner and the library that it writes. If there is too much code, what was used
// longest ago is dropped. Executables share their code with the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "hone/backend/executable.h"
#include "hone/base/status.h"
#include "hone/ir/program_hash.h"

namespace hone::backend {

class ExecutableCache {
 public:
  // The hashes of a program and of all of a target that decides what code is made for it.
  using Key = std::pair<ir::Identity, uint64_t>;

  // The cache keeps code of at most `max_bytes`.
  explicit ExecutableCache(int64_t max_bytes);
  ~ExecutableCache();
  ExecutableCache(const ExecutableCache&) = delete;
  ExecutableCache& operator=(const ExecutableCache&) = delete;

  // Returns what is known under the key, or else what `compile` returns, from any thread; if
  // another thread is compiling it already, it waits for that. Errors of code kUnsupported are
  // kept as well; others, such as a crash of the compiler, are not.
  [[nodiscard]] Result<Executable> get(const Key& key,
                                       const std::function<Result<Executable>()>& compile);
  struct Counts {
    int64_t compiled = 0, reused = 0;  // numbers of programs
    int64_t bytes = 0;                 // size of the code in the cache
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone::backend
