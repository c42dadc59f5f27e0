// analysis/cache_rates.h - how much of a cache the nest of a thread has, and how fast data come
// there.
#pragma once

#include <cstddef>

#include "hone/target/cpu.h"

namespace hone::analysis {

// Returns the bytes of a cache that the nest of one of so many threads can count on.
[[nodiscard]] double usable_bytes(const target::Cache& cache, int threads);
// Returns the cycles in which one core moves bytes into cache `level` from the next one.
[[nodiscard]] double transfer_cycles(const target::Cpu& target, size_t level, double bytes);

}  // namespace hone::analysis
