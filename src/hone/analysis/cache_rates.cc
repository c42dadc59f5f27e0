#include "hone/analysis/cache_rates.h"

#include <algorithm>

namespace hone::analysis {
namespace {

constexpr double kCacheShare = 0.75;  // share of a cache that one loop nest can count on

}  // namespace

double usable_bytes(const target::Cache& cache, int threads) {
  const int sharers = std::max(1, std::min(cache.shared_by, threads));
  return kCacheShare * static_cast<double>(cache.bytes) / sharers;
}

double transfer_cycles(const target::Cpu& target, size_t level, double bytes) {
  const bool last = level + 1 == target.caches.size();
  const double rate =
      last ? target.memory_bytes_per_cycle : target.caches[level + 1].bytes_per_cycle;
  return bytes / std::max(rate, 0.1);
}

}  // namespace hone::analysis
