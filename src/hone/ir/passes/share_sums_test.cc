#include "hone/ir/passes/share_sums.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/ir/passes/transform_testing.h"

namespace hone::ir {
namespace {

size_t place_of(const Program& program, const std::string& name) {
  for (size_t i = 0; i < program.params.size(); ++i) {
    if (program.params[i].buffer->name == name) return i;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

// Returns the program after the pass. It must be valid and compute the same except for rounding.
Program shared(const Program& before) {
  const Program after = share_sums(before);
  testing::expect_valid(after);
  std::vector<Tensor> expected = random_arguments(before, 3), found = random_arguments(after, 3);
  found[place_of(after, "d")] = expected[place_of(before, "d")];
  EXPECT_TRUE(run(before, expected).ok());
  EXPECT_TRUE(run(after, found).ok());
  const Tensor &all = expected[place_of(before, "y")], &again = found[place_of(after, "y")];
  for (int64_t i = 0; i < all.size(); ++i) {
    const double x = all.at(i), y = again.at(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y));  // NaN: nothing stores there
    EXPECT_TRUE(same || std::abs(x - y) < 1e-5 * (1 + std::abs(x))) << x << " " << y;
  }
  return after;
}

TEST(share_sums, pairs_of_rows_share_what_is_even_and_what_is_odd) {
  const Program after = shared(transform_program(kDataOf4));
  const std::string text = print(after);
  EXPECT_NE(text.find("B: f32[6, 7]"), text.npos) << text;
  EXPECT_EQ(text.find("B: f32[6, 6]"), text.npos) << "nothing reads it any more";
  EXPECT_NE(text.find("B[x, 2] * d[t, 2, r, v] + B[x, 4] * d[t, 4, r, v]"), text.npos) << text;
  EXPECT_NE(text.find("B[x, 6] * (B[x, 1] * d[t, 1, r, v]"), text.npos) << text;
  // Rows of a pair beside each other.
  EXPECT_LT(text.find("unrolled r in"), text.find("unrolled x in")) << text;
  const std::vector<float>& values = after.params[0].buffer->values;
  // Rows 1 and 2 are the same now, but for their sign.
  EXPECT_EQ(std::vector<float>(values.begin() + 7, values.begin() + 13),
            std::vector<float>(values.begin() + 14, values.begin() + 20));
  EXPECT_EQ(values[13], 1);
  EXPECT_EQ(values[20], -1);
}

TEST(share_sums, pairs_of_columns_are_added_before_they_are_multiplied) {
  const std::string text = print(shared(transform_program(kBackOf4)));
  EXPECT_NE(text.find("B[x, 1] * (d[t, 1, r, v] + B[x, 6] * d[t, 2, r, v])"), text.npos) << text;
  EXPECT_NE(text.find("B[x, 3] * (d[t, 3, r, v] + B[x, 6] * d[t, 4, r, v])"), text.npos) << text;
}

TEST(share_sums, what_would_gain_nothing_stays) {
  const std::string sum = known_sum_text(6);
  const std::string depends = "B[x, 0] * d[t, x, r, v]" + sum.substr(sum.find(" + "));
  const std::string overwrites =
      "unrolled z in 0..6 { unrolled x in 0..6 { unrolled r in 0..5 { "
      "vectorized v in 0..16 { y[t, z, r, v] = " +
      sum + " } } } }";
  const std::string guarded =
      "unrolled x in 0..6 { if x < t + 3 { unrolled r in 0..5 { "
      "vectorized v in 0..16 { y[t, x, r, v] = " +
      sum + " } } } }";
  const Program programs[] = {
      transform_program(kDataOf4, guarded),  // rows are kept apart
      transform_program(kDataOf2),           // as many operations as before
      transform_program(kDataOf4, transform_loops(6, known_sum_text(5))),  // not a whole row
      transform_program(kDataOf4, transform_loops(6, depends)),  // the other factor differs by row
      transform_program(kDataOf4, transform_loops(6, sum + " + 1.0")),  // more than products
      transform_program(kDataOf4, transform_loops(5, known_sum_text(6, "x + 1"))),
      transform_program(kDataOf4, overwrites),                                // the last row counts
      transform_program(kDataOf4, transform_loops(6, sum, "for unrolled"))};  // x at run time only
  for (const Program& before : programs) EXPECT_EQ(print(shared(before)), print(before));
}

TEST(share_sums, a_matrix_that_is_read_elsewhere_stays_too) {
  const Program after = shared(
      transform_program(kDataOf4, transform_loops(6, known_sum_text(6)) + "\n" +
                                      transform_loops(6, "y[t, x, r, v] + B[x, 0]", "for for")));
  ASSERT_EQ(after.params.size(), 4U) << print(after);
  EXPECT_EQ(after.params[0].buffer->shape, (std::vector<int64_t>{6, 6}));
  EXPECT_EQ(after.params[3].buffer->shape, (std::vector<int64_t>{6, 7})) << "others stay in place";
}

TEST(share_sums, leaves_what_runs_at_compile_time) {
  Program before = transform_program(kDataOf4);
  before.phases[0].prepare = true;
  EXPECT_EQ(print(share_sums(before)), print(before));
}

}  // namespace
}  // namespace hone::ir
