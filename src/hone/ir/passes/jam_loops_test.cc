#include "hone/ir/passes/jam_loops.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"

namespace hone::ir {
namespace {

constexpr const char* kParams = R"(
  input x: f32[8, 33]
  output w: f32[8, 33]
  output a: f32[8]
  output b: f32[8]
  output c: f32[40]
)";

int64_t loops_after(const std::string& body) {
  return testing::loops_after(jam_loops, kParams, body);
}

const char* const kMost = R"(
  unrolled i in 0..2 {
    a[i] = -inf
    vectorized r in 0..33 { a[i] = max(a[i], x[i, r]) }
  })";
const char* const kWeights = R"(
  unrolled i in 0..2 { vectorized n in 0..33 { w[i, n] = exp(x[i, n] - a[i]) } })";
const char* const kTotal = R"(
  unrolled i in 0..2 {
    b[i] = 0.0
    vectorized r in 0..33 { b[i] = b[i] + w[i, r] }
  })";

TEST(jam_loops, rows_of_a_softmax_run_side_by_side) {
  EXPECT_EQ(loops_after(std::string(kMost) + kWeights), 2);
  EXPECT_EQ(loops_after(std::string(kMost) + kWeights + kTotal), 2) << "exponentials are summed up";
}

TEST(jam_loops, rows_begin_anywhere_and_lie_anywhere) {
  EXPECT_EQ(loops_after(R"(
    for o in 0..2 {
      unrolled i in 1..3 {
        b[i + o * 4] = 0.0
        vectorized r in 0..33 { b[i + o * 4] = b[i + o * 4] + exp(x[i * 2, r]) }
      }
    })"),
            2);
}

TEST(jam_loops, rows_that_need_each_other_run_one_after_the_other) {
  EXPECT_EQ(loops_after(R"(
    unrolled i in 0..2 { vectorized r in 0..33 { a[0] = a[0] + exp(x[i, r]) } })"),
            2);
  EXPECT_EQ(loops_after(R"(
    a[1] = 1.0
    unrolled i in 0..2 {
      b[i] = a[1 - i]
      vectorized r in 0..33 { a[i] = a[i] + exp(x[i, r]) }
    })"),
            2);
  EXPECT_EQ(loops_after(R"(
    unrolled i in 0..2 {
      vectorized r in 0..32 { a[i] = a[i] + exp(x[i, r]) }
      vectorized q in 0..32 { c[i + q] = x[i, q] }
    })"),
            3);
}

TEST(jam_loops, rows_of_several_lengths_or_under_conditions_stay) {
  EXPECT_EQ(loops_after(R"(
    unrolled i in 0..2 {
      b[i] = 0.0
      vectorized r in 0..+(i + 7) { b[i] = b[i] + exp(x[i, r]) }
    })"),
            2);
  EXPECT_EQ(loops_after(R"(
    for o in 0..2 {
      unrolled i in 0..2 {
        if i + o * 2 < 3 {
          b[i + o * 2] = 0.0
          vectorized r in 0..33 { b[i + o * 2] = b[i + o * 2] + exp(x[i + o * 2, r]) }
        }
      }
    })"),
            3);
}

// Long rows overlap as they are, and so do sums; of long ones the exponentials are still summed up
// where they are computed.
TEST(jam_loops, long_rows_and_plain_sums_stay) {
  EXPECT_EQ(loops_after(kMost), 2);
  EXPECT_EQ(loops_after(R"(
    alloc thread e: f32[2, 130] {
      unrolled i in 0..2 { vectorized n in 0..130 { e[i, n] = exp(x[i, n // 4]) } }
      unrolled i in 0..2 {
        b[i] = 0.0
        vectorized r in 0..130 { b[i] = b[i] + e[i, r] }
      }
    })"),
            2);
}

TEST(jam_loops, without_a_reduction_along_lanes_order_is_the_schedules) {
  EXPECT_EQ(loops_after(kWeights), 2);
  EXPECT_EQ(loops_after(std::string(kWeights) + R"(
    unrolled i in 0..2 { vectorized n in 0..33 { w[i + 2, n] = w[i, n] * 2.0 } })"),
            4);
}

}  // namespace
}  // namespace hone::ir
