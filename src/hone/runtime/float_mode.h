// runtime/float_mode.h - sets how a thread rounds, traps and treats denormal numbers while
// it runs a model, which is the same whatever mode the caller has. Rounding is to nearest even,
// nothing traps, and denormal numbers count as zero: the tails of softmax and sigmoid reach them,
// and a processor is a hundred times as slow with them as with other numbers. Exception flags that
// kernels raise are lost; the caller's are preserved.
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hone::runtime {

enum class Denormals : uint8_t {
  kZero,  // denormal operands and results count as zero
  kKept,  // denormals are kept, for results that are computed once, before a model runs
};

// Sets the mode of this thread until the destructor restores the previous one. On x86-64 only MXCSR
// matters, as no generated code, and no function that it calls, uses the x87 unit.
class FloatMode {
 public:
  explicit FloatMode(Denormals denormals = Denormals::kZero) : denormals_(denormals) { enter(); }
  ~FloatMode() { leave(); }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

#if defined(__x86_64__)
  void enter() {
    before_ = _mm_getcsr();
    _mm_setcsr(denormals_ == Denormals::kZero ? kAllMasked | kFlushToZero | kDenormalsAreZero
                                              : kAllMasked);
  }
  void leave() const { _mm_setcsr(static_cast<uint32_t>(before_)); }
#elif defined(__aarch64__)
  void enter() {
    asm volatile("mrs %0, fpcr" : "=r"(before_) : : "memory");
    asm volatile("mrs %0, fpsr" : "=r"(flags_) : : "memory");
    const uint64_t mode = denormals_ == Denormals::kZero ? kFlushToZero : 0;
    asm volatile("msr fpcr, %0" : : "r"(mode) : "memory");
  }
  void leave() const {
    asm volatile("msr fpcr, %0" : : "r"(before_) : "memory");
    asm volatile("msr fpsr, %0" : : "r"(flags_) : "memory");
  }
#else
  void enter() {}
  void leave() const {}
#endif

 private:
#if defined(__x86_64__)
  static constexpr uint32_t kAllMasked = 0x1F80;  // rounding bits 0 mean to nearest even
  static constexpr uint32_t kFlushToZero = 0x8000;
  static constexpr uint32_t kDenormalsAreZero = 0x0040;
#elif defined(__aarch64__)
  static constexpr uint64_t kFlushToZero = uint64_t{1} << 24;  // flushes operands, too
#endif
  [[maybe_unused]] Denormals denormals_;
  [[maybe_unused]] uint64_t before_ = 0;
  // The exception flags of aarch64, which has a separate register for them.
  [[maybe_unused]] uint64_t flags_ = 0;
};

}  // namespace hone::runtime
