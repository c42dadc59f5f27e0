// measure/sweep.h - takes what a kernel reads out of the cores' own caches, as the rest of a model
// does between two runs of it, and leaves it in the cache that the cores share.
#pragma once

#include <span>

#include "hone/codegen/runtime/pool.h"
#include "hone/measure/arena.h"

namespace hone::measure {

class Sweep {
 public:
  // `bytes`: that every thread reads, of its own memory: more than its caches hold.
  [[nodiscard]] Status prepare(int64_t bytes, int threads);
  // `warm` is then read again: what the kernel before has just written.
  void run(runtime::Pool* pool, std::span<const std::span<char>> warm) const;

 private:
  Arena memory_;
  int64_t bytes_ = 0;  // per thread
  int threads_ = 0;
};

// Whether memory of this size, read from beginning to end again and again, comes from a cache:
// whether it is read much faster than when it was flushed. Takes some 10 ms per 100 MB.
[[nodiscard]] bool stays_in_cache(int64_t bytes);

}  // namespace hone::measure
