// search/in_parts.h - divides work on many points among the threads of a pool.
#pragma once

#include <algorithm>

#include "hone/base/thread_pool.h"

namespace hone::search {

inline constexpr size_t kPart = 32;  // points that one thread works on at a time

// Calls work(begin, size) for consecutive parts of `count` points, on the threads of the pool if
// there is one.
inline void in_parts(ThreadPool* pool, size_t count, const auto& work) {
  const auto parts = static_cast<int64_t>((count + kPart - 1) / kPart);
  const auto part = [&](int64_t p) {
    const size_t begin = static_cast<size_t>(p) * kPart;
    work(begin, std::min(kPart, count - begin));
  };
  if (pool != nullptr && parts > 1) {
    pool->parallel_for(parts, part);
  } else {
    for (int64_t p = 0; p < parts; ++p) part(p);
  }
}

}  // namespace hone::search
