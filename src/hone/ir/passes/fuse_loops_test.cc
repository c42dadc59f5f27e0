#include "hone/ir/passes/fuse_loops.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"

namespace hone::ir {
namespace {

constexpr const char* kParams = R"(
  input x: f32[8, 32]
  output w: f32[8, 32]
  output a: f32[8]
  output b: f32[8]
)";

int64_t loops_after(const std::string& body) {
  return testing::loops_after(fuse_loops, kParams, body);
}

const char* const kMost = R"(
  for m in 0..8 {
    a[m] = -inf
    vectorized r in 0..32 { a[m] = max(a[m], x[m, r]) }
  })";
const char* const kWeights = R"(
  for m in 0..8 { vectorized n in 0..32 { w[m, n] = exp(x[m, n] - a[m]) } })";
const char* const kTotal = R"(
  for m in 0..8 {
    b[m] = 0.0
    vectorized r in 0..32 { b[m] = b[m] + w[m, r] }
  })";

TEST(fuse_loops, softmax_takes_each_row_once_and_sums_what_it_computes) {
  EXPECT_EQ(loops_after(std::string(kMost) + kWeights + kTotal), 3);  // rows, maximum, the rest
}

TEST(fuse_loops, what_needs_the_whole_row_stays_behind_it) {
  EXPECT_EQ(loops_after(std::string(kMost) + kWeights), 3);
  EXPECT_EQ(loops_after(R"(
    vectorized n in 0..32 { w[0, n] = x[0, n] }
    vectorized n in 0..32 { w[1, n] = w[0, 31 - n] })"),
            2);
}

TEST(fuse_loops, other_rows_keep_loops_apart) {
  // The second loop reads a row that the first one has not stored yet, or stores what it reads.
  EXPECT_EQ(loops_after(std::string(kWeights) + R"(
    for m in 0..8 { vectorized n in 0..32 { b[m] = b[m] + w[7 - m, n] } })"),
            4);
  EXPECT_EQ(loops_after(R"(
    for m in 0..8 { b[m] = a[7] }
    for m in 0..8 { a[m] = b[m] })"),
            2);
  EXPECT_EQ(loops_after(R"(
    for m in 0..4 { a[m * 2] = x[m, 0] }
    for m in 0..4 { b[m] = a[m] })"),
            2);
}

TEST(fuse_loops, rows_of_other_lengths_and_strangers_stay_apart) {
  EXPECT_EQ(loops_after(R"(
    for m in 0..8 { a[m] = x[m, 0] }
    for m in 0..7 { b[m] = a[m] })"),
            2);
  EXPECT_EQ(loops_after(R"(
    for m in 0..8 { a[m] = x[m, 0] }
    for m in 0..8 { b[m] = x[m, 1] })"),
            2);
}

TEST(fuse_loops, what_stands_between_runs_first_if_nobody_minds) {
  EXPECT_EQ(loops_after(R"(
    vectorized n in 0..32 { w[0, n] = x[0, n] }
    a[0] = 0.0
    vectorized n in 0..32 { a[0] = a[0] + w[0, n] })"),
            1);
  EXPECT_EQ(loops_after(R"(
    vectorized n in 0..32 { w[0, n] = x[0, n] }
    w[0, 3] = 1.0
    vectorized n in 0..32 { a[0] = a[0] + w[0, n] })"),
            2);
}

TEST(fuse_loops, another_width_of_elements_would_change_the_lanes) {
  EXPECT_EQ(loops_after(R"(
    alloc thread h: f64[32] {
      vectorized n in 0..32 { w[0, n] = x[0, n] * 2.0 }
      vectorized n in 0..32 { h[n] = f64(w[0, n]) }
      vectorized n in 0..32 { w[1, n] = f32(h[n]) }
    })"),
            2);
}

}  // namespace
}  // namespace hone::ir
