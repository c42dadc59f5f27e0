#include "hone/measure/flush.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone::measure {
namespace {

constexpr size_t kLine = 64;

#if defined(__x86_64__)

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 23)) != 0;
}

// clflushopt lines do not wait for each other, clflush lines do: several times faster.
__attribute__((target("clflushopt"))) void flush_unordered(uintptr_t first, uintptr_t end) {
  for (uintptr_t line = first; line < end; line += kLine) {
    __builtin_ia32_clflushopt(reinterpret_cast<void*>(line));
  }
}

void flush_lines(uintptr_t first, uintptr_t end) {
  static const bool unordered = has_clflushopt();
  if (unordered) return flush_unordered(first, end);
  for (uintptr_t line = first; line < end; line += kLine) {
    __builtin_ia32_clflush(reinterpret_cast<const void*>(line));
  }
}

#elif defined(__aarch64__)

void flush_lines(uintptr_t first, uintptr_t end) {
  for (uintptr_t line = first; line < end; line += kLine) {
    __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
  }
}

#else
#error "no way to flush a cache line on this architecture"
#endif

constexpr size_t kTile = size_t{64} << 10;  // bytes

using Pieces = std::span<const std::span<char>>;

int64_t tiles_of(std::span<const char> piece) {
  return static_cast<int64_t>((piece.size() + kTile - 1) / kTile);
}

// A tile is so many bytes of the pieces laid end to end, each piece's last tile shorter.
int flush_tiles(void* const* args, void*, int64_t first, int64_t last, int) {
  int64_t tile = 0;
  for (const std::span<char>& piece : *static_cast<const Pieces*>(args[0])) {
    const int64_t tiles = tiles_of(piece);
    const int64_t begin = std::max(first - tile, int64_t{0}), end = std::min(last - tile, tiles);
    if (begin < end) {
      const size_t from = static_cast<size_t>(begin) * kTile;
      const size_t to = std::min(static_cast<size_t>(end) * kTile, piece.size());
      flush_from_caches(piece.subspan(from, to - from));
    }
    tile += tiles;
  }
  return 0;
}

}  // namespace

void flush_from_caches(std::span<const char> memory) {
  if (memory.empty()) return;
  const auto first = reinterpret_cast<uintptr_t>(memory.data()) / kLine * kLine;
  const auto end = reinterpret_cast<uintptr_t>(memory.data()) + memory.size();
  flush_lines(first, end);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void flush_from_caches(runtime::Pool* pool, Pieces pieces) {
  int64_t tiles = 0;
  for (const std::span<char>& piece : pieces) tiles += tiles_of(piece);
  if (tiles == 0) return;
  void* args[] = {&pieces};
  const runtime::PhaseCall call{flush_tiles, args, tiles, 0};
  (void)runtime::pool_run(pool, &call, 1, nullptr, 0);
}

}  // namespace hone::measure
