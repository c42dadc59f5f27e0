#include "hone/runtime/float_mode.h"

#include <fenv.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "hone/runtime/pool.h"

namespace hone::runtime {
namespace {

constexpr int64_t kTiles = 64;

// args: a, b, results. Each element divides, overflows, underflows, is invalid or is not exact.
int arithmetic(void* const* args, void*, int64_t first, int64_t last, int) {
  const float* a = static_cast<const float*>(args[0]);
  const float* b = static_cast<const float*>(args[1]);
  float* results = static_cast<float*>(args[2]);
  for (int64_t i = first; i < last; ++i) {
    results[3 * i] = a[i] / b[i];
    results[3 * i + 1] = a[i] * b[i];
    results[3 * i + 2] = a[i] + b[i];
  }
  return 0;
}

struct Operands {
  std::vector<float> a, b;
  Operands() {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const float special[][2] = {{1, 0},      {-3, 0},         {0, 0},           {kInf, -kInf},
                                {kInf, 0},   {3e38F, 2e38F},  {-3e38F, -3e38F}, {1e-30F, 1e-30F},
                                {1e-40F, 2}, {1e-40F, 1e-40F}};
    for (const auto& [x, y] : special) {
      a.push_back(x);
      b.push_back(y);
    }
    while (std::ssize(a) < kTiles) {
      a.push_back(1.0F + static_cast<float>(a.size()) / 3.0F);
      b.push_back(0.7F - static_cast<float>(a.size()) / 7.0F);
    }
  }
};

// The owner's threads; what mode the owner's code sees.
struct Owner {
  std::vector<int> rounding;
  static void parallel_for(void* self, int count, PoolTask task, void* context) {
    static_cast<Owner*>(self)->rounding.push_back(fegetround());
    std::vector<std::thread> threads;
    for (int i = 1; i < count; ++i) threads.emplace_back(task, context, i);
    task(context, 0);
    for (std::thread& thread : threads) thread.join();
  }
};

// Bits of the results; the pool is made and run in the mode of the caller.
std::vector<uint32_t> run(int threads, Owner* owner = nullptr) {
  static const Operands operands;  // made in the usual mode, by the first test
  std::vector<float> results(3 * kTiles, -1.0F);
  void* args[] = {const_cast<float*>(operands.a.data()), const_cast<float*>(operands.b.data()),
                  results.data()};
  PoolOptions options{.num_threads = threads};
  if (owner != nullptr) {
    options.parallel_for = Owner::parallel_for;
    options.owner = owner;
  }
  Pool* pool = pool_create(options);
  const PhaseCall phase = {arithmetic, args, kTiles, 0};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pool_run(pool, &phase, 1, nullptr, 0), 0);
  pool_destroy(pool);
  std::vector<uint32_t> bits(results.size());
  std::memcpy(bits.data(), results.data(), results.size() * sizeof(float));
  return bits;
}

// The test's own mode, put back at the end.
struct Restore {
  fenv_t before;
  Restore() { fegetenv(&before); }
  ~Restore() { fesetenv(&before); }
};

TEST(float_mode, results_do_not_depend_on_the_callers_rounding) {
  const std::vector<uint32_t> expected = run(1);
  const Restore restore;
  for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    for (const int threads : {1, 2, 4}) {
      fesetround(rounding);
      Owner owner;
      const std::vector<uint32_t> own = run(threads), owners = run(threads, &owner);
      const int after = fegetround();
      fesetround(FE_TONEAREST);
      EXPECT_EQ(after, rounding) << threads;
      EXPECT_EQ(own, expected) << rounding << " " << threads;
      EXPECT_EQ(owners, expected) << rounding << " " << threads;
      EXPECT_EQ(owner.rounding, std::vector<int>(threads > 1 ? 3 : 0, rounding));
    }
  }
}

TEST(float_mode, the_callers_traps_do_not_fire) {
  const std::vector<uint32_t> expected = run(1);
  const Restore restore;
  for (const int threads : {1, 2, 4}) {
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
    Owner owner;
    const std::vector<uint32_t> own = run(threads), owners = run(threads, &owner);
    const int after = fegetexcept();
    fedisableexcept(FE_ALL_EXCEPT);
    EXPECT_EQ(after, FE_ALL_EXCEPT);
    EXPECT_EQ(own, expected) << threads;
    EXPECT_EQ(owners, expected) << threads;
  }
}

TEST(float_mode, the_callers_flags_are_as_they_were) {
  static_cast<void>(run(1));
  const Restore restore;
  for (const int flags : {0, FE_OVERFLOW, FE_INEXACT | FE_DIVBYZERO}) {
    for (const int threads : {1, 2, 4}) {
      feclearexcept(FE_ALL_EXCEPT);
      feraiseexcept(flags);
      const int before = fetestexcept(FE_ALL_EXCEPT);  // an overflow is inexact, too
      run(threads);
      EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), before) << flags << " " << threads;
    }
  }
}

TEST(float_mode, denormals_are_zero_or_kept_as_asked) {
  volatile float least = std::numeric_limits<float>::denorm_min();
  volatile float normal = std::numeric_limits<float>::min();
  volatile float doubled = 0, halved = 0;
  {
    const FloatMode mode;
    doubled = least * 2.0F;
    halved = normal * 0.5F;
  }
  EXPECT_EQ(doubled, 0.0F);
  EXPECT_EQ(halved, 0.0F);
  {
    const FloatMode mode(Denormals::kKept);
    doubled = least * 2.0F;
    halved = normal * 0.5F;
  }
  EXPECT_EQ(doubled, 2.0F * std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(halved, std::numeric_limits<float>::min() / 2.0F);
}

}  // namespace
}  // namespace hone::runtime
