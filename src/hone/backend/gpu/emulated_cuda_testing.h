// backend/gpu/emulated_cuda_testing.h - for tests: what printed CUDA C takes for granted, for the
// compiler of this machine. It stands in front of the text of kernels, whose inline assembler has
// become calls of emulated_ptx_testing.h (cuda_emulation_testing.h).
//
// Accesses to memory are seen by the calls that -fsanitize=thread inserts, misaligned vectors and
// indices beyond an array's extent by those of -fsanitize=alignment,bounds; all are defined here.
#pragma once

#include <math.h>

#include <utility>

#include "hone/backend/gpu/emulated_ptx_testing.h"

namespace hone::backend::gpu::emulated {

__attribute__((visibility("hidden"))) Services* services = nullptr;

// Shared arrays lie in a section of their own, which is never empty.
#define HONE_SHARED __attribute__((section("hone_shared_arrays")))
__attribute__((used)) HONE_SHARED static char no_shared[16];
extern "C" __attribute__((visibility("hidden"))) char __start_hone_shared_arrays[];
extern "C" __attribute__((visibility("hidden"))) char __stop_hone_shared_arrays[];

extern "C" __attribute__((visibility("default"), no_sanitize("thread"))) SharedArrays
emulated_start(Services* of_program) {
  services = of_program;
  return {__start_hone_shared_arrays, __stop_hone_shared_arrays};
}

__attribute__((noinline, no_sanitize("thread"))) static Index thread_index() {
  return services->thread;
}
__attribute__((noinline, no_sanitize("thread"))) static Index block_index() {
  return services->block;
}
__attribute__((noinline, no_sanitize("thread"))) static char* dynamic_shared() {
  return services->dynamic_shared;
}

// Calls a kernel with arguments that are pointers, and the number of the first tile.
template <typename T>
__attribute__((no_sanitize("thread"))) T argument(const void* const* arguments, size_t i) {
  if constexpr (sizeof(T) == sizeof(void*) && !std::is_integral_v<T>) {
    return static_cast<T>(const_cast<void*>(arguments[i]));
  } else {
    return *static_cast<const T*>(arguments[i]);
  }
}
template <typename... P>
void call(void (*kernel)(P...), const void* const* arguments) {
  [&]<size_t... i>(std::index_sequence<i...>) { kernel(argument<P>(arguments, i)...); }
  (std::index_sequence_for<P...>());
}

// ---- what warps exchange ----

template <typename T>
struct Shuffled {
  T value;
  unsigned from;
  T result;
};
template <typename T>
void shuffle(void* const* lanes) {
  for (unsigned id = 0; id < kWarp; ++id) {
    if (lanes[id] == nullptr) continue;
    auto& lane = *static_cast<Shuffled<T>*>(lanes[id]);
    if (lanes[lane.from] == nullptr)
      services->fail("a shuffle from a lane that is not in its mask", 0);
    lane.result = static_cast<Shuffled<T>*>(lanes[lane.from])->value;
  }
}
template <typename T>
T shuffle_from(unsigned mask, T value, unsigned from, int line) {
  Shuffled<T> own = {value, from, {}};
  services->meet(mask, shuffle<T>, &own, false, line);
  return own.result;
}
inline unsigned lane_index() { return thread_index().x % kWarp; }
inline void nothing(void* const*) {}

}  // namespace hone::backend::gpu::emulated

// ---- the language ----

#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static HONE_SHARED
#define threadIdx (hone::backend::gpu::emulated::thread_index())
#define blockIdx (hone::backend::gpu::emulated::block_index())

template <typename T>
T __shfl_sync(unsigned mask, T x, int from, int width = 32, int line = __builtin_LINE()) {
  using namespace hone::backend::gpu::emulated;
  const unsigned lane = lane_index(), first = lane / width * width;
  return shuffle_from(mask, x, first + static_cast<unsigned>(from) % width, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T x, int by, int width = 32, int line = __builtin_LINE()) {
  using namespace hone::backend::gpu::emulated;
  const unsigned lane = lane_index(), from = lane ^ static_cast<unsigned>(by);
  // A lane gets its own value in place of one of a later part.
  return shuffle_from(mask, x, from / width > lane / width ? lane : from, line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32, int line = __builtin_LINE()) {
  using namespace hone::backend::gpu::emulated;
  const unsigned lane = lane_index();
  return shuffle_from(mask, x, lane % width + by < static_cast<unsigned>(width) ? lane + by : lane,
                      line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32, int line = __builtin_LINE()) {
  using namespace hone::backend::gpu::emulated;
  const unsigned lane = lane_index();
  return shuffle_from(mask, x, lane % width >= by ? lane - by : lane, line);
}
// Other threads may have changed any memory when a barrier returns.
inline void __syncwarp(unsigned mask = 0xffffffff, int line = __builtin_LINE()) {
  using namespace hone::backend::gpu::emulated;
  asm volatile("" ::: "memory");
  services->meet(mask, nothing, services, true, line);
  asm volatile("" ::: "memory");
}
inline void __syncthreads(int line = __builtin_LINE()) {
  asm volatile("" ::: "memory");
  hone::backend::gpu::emulated::services->block_barrier(line);
  asm volatile("" ::: "memory");
}
inline unsigned __cvta_generic_to_shared(const void* pointer, int line = __builtin_LINE()) {
  return hone::backend::gpu::emulated::services->shared_address(pointer, line);
}

#define HONE_BITS_AS(name, to, from)       \
  inline to name(from x) {                 \
    to y;                                  \
    static_assert(sizeof(x) == sizeof(y)); \
    memcpy(&y, &x, sizeof(y));             \
    return y;                              \
  }
HONE_BITS_AS(__int_as_float, float, int)
HONE_BITS_AS(__uint_as_float, float, unsigned)
HONE_BITS_AS(__float_as_int, int, float)
HONE_BITS_AS(__float_as_uint, unsigned, float)
HONE_BITS_AS(__longlong_as_double, double, long long)
HONE_BITS_AS(__double_as_longlong, long long, double)

// Vectors, which lie at multiples of their size.
#define HONE_VECTORS(name, element)                                      \
  struct alignas(2 * sizeof(element)) name##2 {                          \
    element x, y;                                                        \
  };                                                                     \
  struct alignas(4 * sizeof(element)) name##4 {                          \
    element x, y, z, w;                                                  \
  };                                                                     \
  inline name##2 make_##name##2(element x, element y) { return {x, y}; } \
  inline name##4 make_##name##4(element x, element y, element z, element w) { return {x, y, z, w}; }
HONE_VECTORS(char, signed char)
HONE_VECTORS(uchar, unsigned char)
HONE_VECTORS(short, short)
HONE_VECTORS(ushort, unsigned short)
HONE_VECTORS(int, int)
HONE_VECTORS(uint, unsigned)
HONE_VECTORS(long, long)
HONE_VECTORS(ulong, unsigned long)
HONE_VECTORS(float, float)
HONE_VECTORS(double, double)

// ---- what sanitizers call ----

#define HONE_HOOK extern "C" __attribute__((visibility("hidden"), no_sanitize("thread")))

HONE_HOOK bool emulated_lies_in(const void* p, const void* begin, unsigned long size) {
  return static_cast<unsigned long>(static_cast<const char*>(p) - static_cast<const char*>(begin)) <
         size;
}
HONE_HOOK void emulated_access(const void* p, unsigned bytes, bool write) {
  using namespace hone::backend::gpu::emulated;
  // Stacks and the emulation's own data are no memory of the kernel.
  if (emulated_lies_in(p, services->stacks, services->stacks_bytes) ||
      emulated_lies_in(p, &services, sizeof(services)) ||
      emulated_lies_in(p, services, sizeof(*services)))
    return;
  services->access(p, bytes, write);
}
#define HONE_ACCESS(bytes)                                                                   \
  HONE_HOOK void __tsan_read##bytes(void* p) { emulated_access(p, bytes, false); }           \
  HONE_HOOK void __tsan_write##bytes(void* p) { emulated_access(p, bytes, true); }           \
  HONE_HOOK void __tsan_unaligned_read##bytes(void* p) { emulated_access(p, bytes, false); } \
  HONE_HOOK void __tsan_unaligned_write##bytes(void* p) { emulated_access(p, bytes, true); }
HONE_ACCESS(1)
HONE_ACCESS(2)
HONE_ACCESS(4)
HONE_ACCESS(8)
HONE_ACCESS(16)
HONE_HOOK void __tsan_read_range(void* p, unsigned long bytes) {
  emulated_access(p, static_cast<unsigned>(bytes), false);
}
HONE_HOOK void __tsan_write_range(void* p, unsigned long bytes) {
  emulated_access(p, static_cast<unsigned>(bytes), true);
}
HONE_HOOK void* __tsan_memset(void* p, int value, unsigned long bytes) {
  emulated_access(p, static_cast<unsigned>(bytes), true);
  return __builtin_memset(p, value, bytes);
}
HONE_HOOK void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  emulated_access(from, static_cast<unsigned>(bytes), false);
  emulated_access(to, static_cast<unsigned>(bytes), true);
  return __builtin_memcpy(to, from, bytes);
}
HONE_HOOK void __tsan_init() {}
HONE_HOOK void __tsan_func_entry(void*) {}
HONE_HOOK void __tsan_func_exit(void*) {}

// The data begins with where the code is: the file, the line and the column.
struct EmulatedPlace {
  const char* file;
  unsigned line, column;
};
HONE_HOOK void __ubsan_handle_type_mismatch_v1(void* place, void*) {
  hone::backend::gpu::emulated::services->fail("a misaligned vector",
                                               static_cast<EmulatedPlace*>(place)->line);
}
HONE_HOOK void __ubsan_handle_out_of_bounds(void* place, void*) {
  hone::backend::gpu::emulated::services->fail("an index beyond the extent of its array",
                                               static_cast<EmulatedPlace*>(place)->line);
}
