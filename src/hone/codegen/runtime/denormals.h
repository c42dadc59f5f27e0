// codegen/runtime/denormals.h - floats too small for a normal exponent count as zero while a model
// runs: the tails of softmax and sigmoid reach them, and a processor takes a hundred times as long
// for them as for other numbers.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hone::runtime {

// Sets the mode of this thread; the destructor restores what was there.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(static_cast<uint32_t>(before_) | 0x8040U); }
  ~FlushDenormals() { _mm_setcsr(static_cast<uint32_t>(before_)); }
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(before_ | (uint64_t{1} << 24)));
  }
  ~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
#else
  FlushDenormals() = default;
  ~FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t before_ = 0;
};

}  // namespace hone::runtime
