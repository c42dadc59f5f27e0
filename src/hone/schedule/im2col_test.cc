// An operand of a sum as a stage of its own: the step im2col.
#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::testing::conv2d;
using compute::testing::gemm;
using compute::testing::max_pool;

TEST(im2col, has_an_element_for_each_point_that_reads_another_one) {
  const Result<Steps> steps = parse_steps("im2col(conv2d, data)");
  ASSERT_TRUE(steps.ok());
  const Result<State> state = replay(conv2d({.h = 9, .w = 7, .ic = 5, .stride = 2}), *steps);
  ASSERT_TRUE(state.ok()) << state.status().message();
  const int index = state->find_stage("data.col");
  ASSERT_GE(index, 0);
  const StageInfo& info = *state->stages[static_cast<size_t>(index)].info;
  std::vector<std::string> names;
  for (const compute::Axis& axis : info.axes) names.push_back(axis.var->name);
  EXPECT_EQ(names, (std::vector<std::string>{"n", "oh", "ow", "kh", "kw", "ic"}));
  EXPECT_EQ(info.stage.outputs[0].buffer->shape, (std::vector<int64_t>{1, 5, 4, 3, 3, 5}));
  EXPECT_EQ(algorithm_of(*steps), "im2col");
}

TEST(im2col, gives_what_the_sum_gives) {
  expect_same(conv2d({.ic = 5, .residual = true}), "im2col(conv2d, data)\n");
  expect_same(conv2d({.h = 9, .ic = 3, .kernel = 5, .stride = 2, .pad = 2}),
              "im2col(conv2d, data)\nlayout(data.col, [oh, ow/3, kh, kw, ic, ow%3])\n"
              "parallel(data.col, n)\n");
  expect_same(gemm(13, 24, 9), "im2col(matmul, data)\nlayout(data.col, [m/4, k, m%4])\n");
}

TEST(im2col, is_computed_where_a_block_of_its_readers_is) {
  expect_same(conv2d({.h = 9, .w = 9, .ic = 4, .oc = 24}),
              "im2col(conv2d, data)\nsplit(relu, oh, [2])\nfuse(relu, [n, oh.0])\n"
              "parallel(relu, n@oh.0)\ncompute_at(bias, relu, n@oh.0)\n"
              "compute_at(conv2d, relu, n@oh.0)\ncompute_at(data.col, relu, n@oh.0)\n"
              "layout(data.col, [oh, ow/4, kh, kw, ic, ow%4])\n");
}

TEST(im2col, says_why_it_is_refused) {
  EXPECT_NE(refusal(conv2d({}), "im2col(nothing, data)").find("no stage nothing"),
            std::string::npos);
  EXPECT_NE(refusal(conv2d({}), "im2col(conv2d, other)").find("conv2d does not read other"),
            std::string::npos);
  EXPECT_NE(refusal(conv2d({}), "im2col(relu, bias)").find("relu is not a sum"), std::string::npos);
}

}  // namespace
}  // namespace hone::schedule
