// measure/sweep.h - moves what a kernel reads out of the cores' own caches, as the rest of a model
// does between two runs, but leaves it in the cache that the cores share.
#pragma once

#include <span>

#include "hone/measure/arena.h"
#include "hone/runtime/pool.h"

namespace hone::measure {

class Sweep {
 public:
  // Allocates `bytes` of memory for every thread, which must be more than its own caches hold.
  [[nodiscard]] Status prepare(int64_t bytes, int threads);
  // Sweeps the caches, then reads `warm` again, which stands for what the kernel before has just
  // written.
  void run(runtime::Pool* pool, std::span<const std::span<char>> warm) const;

 private:
  Arena memory_;
  int64_t bytes_ = 0;  // per thread
  int threads_ = 0;
};

// Returns whether memory of this size that is read repeatedly from beginning to end comes from a
// cache, that is, whether it is read much faster than after a flush. It takes some 10 ms per 100
// MB.
[[nodiscard]] bool stays_in_cache(int64_t bytes);

}  // namespace hone::measure
