#include "hone/schedule/strassen.h"

#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

// A 1x1 convolution of an image: a product with `rows` rows for each of its lines.
compute::Dag product(int64_t lines, int64_t rows, int64_t columns, int64_t sum) {
  return compute::testing::conv2d({.h = lines,
                                   .w = rows,
                                   .ic = sum,
                                   .oc = columns,
                                   .kernel = 1,
                                   .pad = 0,
                                   .border = 0,
                                   .residual = true});
}

TEST(strassen, keeps_the_meaning_of_products_of_any_size) {
  for (const int64_t lines : {1, 3, 4}) {
    for (const int64_t rows : {2, 5, 6}) {
      for (const int64_t columns : {8, 24}) {
        for (const int64_t sum : {2, 10}) {
          SCOPED_TRACE(fmt::format("{} x {} x {} x {}", lines, rows, columns, sum));
          const compute::Dag dag = product(lines, rows, columns, sum);
          // Integers: exact, however they are added.
          expect_same(dag, "strassen(conv2d, ow, 4)");
          expect_same(dag, "strassen(conv2d, ow, 2)");
          if (lines > 1) expect_same(dag, "strassen(conv2d, oh, 4)");
        }
      }
    }
  }
}

// docs/studies/products.md, "Strassen", and trial::Accuracy.
TEST(strassen, rounds_as_is_documented) {
  const compute::Dag dag = product(8, 8, 32, 768);
  const double direct = rounding_of(dag, ""), error = rounding_of(dag, "strassen(conv2d, ow, 16)");
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 4e-6);
  EXPECT_LT(direct, 4e-6);
}

TEST(strassen, takes_seven_eighths_of_the_products) {
  const Result<State> state =
      replay(product(1, 8, 32, 64), *parse_steps("strassen(conv2d, ow, 4)"));
  ASSERT_TRUE(state.ok()) << state.status().message();
  const StageInfo& products =
      *state->stages[static_cast<size_t>(state->find_stage("conv2d.m"))].info;
  EXPECT_EQ(compute::flops(products.stage), 2.0 * 7 * (8 / 2) * (32 / 2) * (64 / 2));
}

TEST(strassen, declines_what_has_no_halves) {
  const auto why = [](const compute::Dag& dag, const std::string& rows, int64_t lanes) {
    return check(Strassen{"conv2d", rows, lanes}, initial_state(dag)).message();
  };
  const auto none = [](const std::string& rows, int64_t lanes) {
    return fmt::format(
        "conv2d has no matrix product of several rows {} whose sum has halves and whose columns "
        "have pairs of {} lanes",
        rows, lanes);
  };
  EXPECT_EQ(why(product(1, 7, 16, 8), "oh", 4), none("oh", 4)) << "a single row";
  EXPECT_EQ(why(product(1, 7, 16, 8), "ow", 4), "");
  EXPECT_EQ(why(product(2, 8, 16, 9), "ow", 4), none("ow", 4)) << "an odd sum";
  EXPECT_EQ(why(product(2, 8, 16, 8), "ow", 16), none("ow", 16)) << "one vector of columns";
  EXPECT_EQ(why(product(2, 8, 16, 8), "ow", 0), none("ow", 0));
  EXPECT_EQ(why(product(2, 8, 16, 8), "oc", 4), none("oc", 4)) << "columns are no rows";
  EXPECT_EQ(why(compute::testing::conv2d({.h = 8, .w = 8, .ic = 8, .oc = 16}), "ow", 4),
            none("ow", 4))
      << "a window is summed over, too";
  EXPECT_EQ(
      check(Strassen{"depthwise", "ow", 4}, initial_state(compute::testing::depthwise(8, 8, 8, 1)))
          .message()
          .substr(0, 13),
      "depthwise has");
  EXPECT_EQ(check(Strassen{"relu", "ow", 4}, initial_state(product(2, 8, 16, 8))).message(),
            "relu is no product with constant weights");
}

}  // namespace
}  // namespace hone::schedule
