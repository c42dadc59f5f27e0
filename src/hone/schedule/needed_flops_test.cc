#include "hone/schedule/needed_flops.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"

namespace hone::schedule {
namespace {

using compute::Dag;
using compute::testing::attention;
using compute::testing::conv2d;
using compute::testing::ConvShape;

double flops_of(const Dag& dag, std::initializer_list<std::string_view> stages) {
  double total = 0;
  for (const std::string_view name : stages) total += compute::flops(*dag.find_stage(name));
  return total;
}

double needed(const Dag& dag) { return needed_flops(initial_state(dag)); }

// Taps that meet the image, of all output places along a dimension.
double inside(int64_t image, int64_t outputs, int64_t taps, int64_t stride, int64_t pad) {
  int64_t count = 0;
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t k = 0; k < taps; ++k) {
      const int64_t i = o * stride + k - pad;
      count += i >= 0 && i < image ? 1 : 0;
    }
  }
  return static_cast<double>(count) / static_cast<double>(outputs * taps);
}

TEST(needed_flops, products_with_known_zeros_are_none) {
  for (const int64_t stride : {1, 2}) {
    for (const int64_t pad : {1, 3}) {
      const ConvShape shape{.h = 5, .w = 8, .kernel = 2 * pad + 1, .stride = stride, .pad = pad};
      Dag dag = conv2d(shape);
      EXPECT_DOUBLE_EQ(needed(dag), compute::flops(dag)) << "nothing is known";
      dag.params[0].zeros = {0, pad, pad, 0, 0, pad, pad, 0};
      const double share = inside(5, (5 - 1) / stride + 1, shape.kernel, stride, pad) *
                           inside(8, (8 - 1) / stride + 1, shape.kernel, stride, pad);
      EXPECT_LT(share, 0.9);
      const double products = flops_of(dag, {"conv2d"});
      EXPECT_DOUBLE_EQ(needed(dag), compute::flops(dag) - (1 - share) * products);
      dag.params[1].role = ir::Role::kInput;  // infinity times zero is no zero
      EXPECT_DOUBLE_EQ(needed(dag), compute::flops(dag));
    }
  }
}

TEST(needed_flops, what_a_causal_mask_hides_is_none) {
  EXPECT_DOUBLE_EQ(needed(attention(2, 24, 24, 4)), compute::flops(attention(2, 24, 24, 4)));
  for (const int64_t keys : {24, 30}) {
    const Dag dag = attention(2, 24, keys, 4, 0);
    const double share = 25.0 / static_cast<double>(2 * keys);
    const double hidden =
        flops_of(dag, {"scores", "masked", "most", "weights", "total", "sums"}) * (1 - share);
    EXPECT_NEAR(needed(dag), compute::flops(dag) - hidden, 1e-6 * compute::flops(dag));
  }
  const Dag all = attention(2, 24, 24, 4, 24);
  EXPECT_DOUBLE_EQ(needed(all), compute::flops(all)) << "all keys are seen";
}

// Scores that something else reads as well are needed whole.
TEST(needed_flops, of_what_two_read_is_what_either_needs) {
  Dag dag = attention(2, 24, 24, 4, 0);
  for (compute::Stage& stage : dag.stages) {
    if (stage.name == "most") stage.until = nullptr;
  }
  const double hidden = flops_of(dag, {"weights", "total", "sums"}) * (1 - 25.0 / 48);
  EXPECT_NEAR(needed(dag), compute::flops(dag) - hidden, 1e-6 * compute::flops(dag));
}

}  // namespace
}  // namespace hone::schedule
