#include "hone/analysis/gpu_access.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hone::analysis {
namespace {

using schedule::Annotation;

constexpr int kBanks = 32;         // of shared memory, ...
constexpr int64_t kBankBytes = 4;  // the width of each bank
constexpr int64_t kMostVectorBytes = 16;

// Elements that one instruction of a thread moves.
int64_t vector_elements(const Nest& nest, const NestAccess& access) {
  if (nest.loops.empty()) return 1;
  const NestLoop& last = nest.loops.back();
  if (last.annotation != Annotation::kVectorize || access.stride(nest.loops.size() - 1) != 1)
    return 1;
  return std::min(last.extent, std::max<int64_t>(1, kMostVectorBytes / access.element_bytes));
}

// Counts the units of so many bytes that lie in the pieces of memory, each once.
class Units {
 public:
  explicit Units(int64_t bytes) : bytes_(bytes) {}
  void add(int64_t begin, int64_t length) {
    const auto floor = [&](int64_t at) {
      return at >= 0 ? at / bytes_ : -((bytes_ - 1 - at) / bytes_);
    };
    for (int64_t unit = floor(begin); unit <= floor(begin + length - 1); ++unit)
      units_.push_back(unit);
  }
  [[nodiscard]] const SmallVector<int64_t, 128>& distinct() {
    std::sort(units_.begin(), units_.end());
    units_.erase(std::unique(units_.begin(), units_.end()), units_.end());
    return units_;
  }

 private:
  int64_t bytes_;
  SmallVector<int64_t, 128> units_;
};

// The words that lanes want of the bank that most of them want one of.
int fullest_bank(Units& words) {
  std::array<int, kBanks> wanted = {};
  for (const int64_t word : words.distinct())
    ++wanted[static_cast<size_t>((word % kBanks + kBanks) % kBanks)];
  return std::max(1, *std::max_element(wanted.begin(), wanted.end()));
}

int64_t reach(const NestAccess& access, size_t d, const Extents& extents) {
  int64_t reach = 1 + access.spread[d];
  for (size_t i = 0; i < extents.size(); ++i)
    reach += std::abs(access.move[d][i]) * (extents[i] - 1);
  return std::min(reach, access.shape[d]);
}

}  // namespace

bool is_private(ir::Scope scope) {
  return scope == ir::Scope::kFragment || scope == ir::Scope::kRegister ||
         scope == ir::Scope::kStack || scope == ir::Scope::kThread;
}

WarpAccess warp_access(const Nest& nest, const NestAccess& access, int warp) {
  WarpAccess found;
  const int64_t elements = vector_elements(nest, access);
  const int64_t bytes = elements * access.element_bytes;
  Units sectors(kSectorBytes), words(kBankBytes);
  int64_t threads = 1;
  for (const NestLoop& loop : nest.loops)
    threads *= schedule::is_thread_loop(loop.annotation) ? loop.extent : 1;
  for (int64_t lane = 0; lane < std::min<int64_t>(warp, threads); ++lane) {
    int64_t rest = lane, at = 0;
    for (size_t i = nest.loops.size(); i-- > 0;) {
      if (!schedule::is_thread_loop(nest.loops[i].annotation)) continue;
      at += rest % nest.loops[i].extent * access.stride(i);
      rest /= nest.loops[i].extent;
    }
    at *= access.element_bytes;
    if (lane == 1) found.lane_bytes = at;
    sectors.add(at, bytes);
    words.add(at, bytes);
  }
  found.elements = static_cast<double>(elements);
  found.sectors = static_cast<double>(sectors.distinct().size());
  found.wavefronts = fullest_bank(words);
  return found;
}

double sector_bytes(const NestAccess& access, const Extents& extents) {
  // Inner dimensions that are covered whole join the next one.
  double run = access.element_bytes, rows = 1;
  bool joined = true;
  for (size_t d = access.move.size(); d-- > 0;) {
    const int64_t extent = reach(access, d, extents);
    (joined ? run : rows) *= static_cast<double>(extent);
    joined = joined && extent == access.shape[d];
  }
  return rows * std::ceil(run / kSectorBytes) * kSectorBytes;
}

SmallVector<size_t, 8> serial_loops(const Nest& nest, size_t body) {
  SmallVector<size_t, 8> found;
  for (size_t i = 0; i < body; ++i) {
    const Annotation annotation = nest.loops[i].annotation;
    if (annotation != Annotation::kParallel && !schedule::is_thread_loop(annotation))
      found.push_back(i);
  }
  return found;
}

CachedLoops cached_loops(const Nest& nest, size_t body, double cache_bytes) {
  CachedLoops cached;
  for (const NestLoop& loop : nest.loops)
    cached.extents.push_back(loop.annotation == Annotation::kParallel ? 1 : loop.extent);
  const auto held = [&] {
    double bytes = 0;
    for (const NestAccess& access : nest.accesses)
      bytes += access.scope == ir::Scope::kGlobal ? sector_bytes(access, cached.extents) : 0;
    return bytes;
  };
  for (const size_t loop : serial_loops(nest, body)) {
    if (cached.fits = held() <= cache_bytes; cached.fits) return cached;
    cached.times *= static_cast<double>(nest.loops[loop].extent);
    cached.extents[loop] = 1;
  }
  cached.fits = held() <= cache_bytes;
  return cached;
}

}  // namespace hone::analysis
