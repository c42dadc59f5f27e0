#include "hone/measure/flush.h"

#include <cstddef>
#include <cstdint>

namespace hone::measure {
namespace {

constexpr size_t kLine = 64;

}  // namespace

void flush_from_caches(std::span<const char> memory) {
  if (memory.empty()) return;
  const auto first = reinterpret_cast<uintptr_t>(memory.data()) / kLine * kLine;
  const auto end = reinterpret_cast<uintptr_t>(memory.data()) + memory.size();
  for (uintptr_t line = first; line < end; line += kLine) {
#if defined(__x86_64__)
    __builtin_ia32_clflush(reinterpret_cast<const void*>(line));
#elif defined(__aarch64__)
    __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
#else
#error "no way to flush a cache line on this architecture"
#endif
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

}  // namespace hone::measure
