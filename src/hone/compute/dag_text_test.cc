#include "hone/compute/dag_text.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"

namespace hone::compute {
namespace {

std::vector<Dag> usual_dags() {
  return {testing::gemm(5, 6, 7),         testing::conv2d({.residual = true}),
          testing::max_pool(8, 8, 4),     testing::softmax(2, 9, 3),
          testing::running_sum(3, 5),     testing::attention(2, 7, 9, 4, 1),
          testing::transpose(3, 4, 5, 1), testing::inverted_residual(6, 6, 4, 8, 4)};
}

TEST(dag_text, gives_the_same_task_back) {
  for (const Dag& dag : usual_dags()) {
    const std::string text = to_text(dag);
    const Result<Dag> back = parse_dag(text);
    ASSERT_TRUE(back.ok()) << back.status().message() << "\n" << text;
    EXPECT_EQ(task_key(*back), task_key(dag)) << text;
    EXPECT_EQ(to_text(*back), text);
    EXPECT_EQ(describe(*back), describe(dag));
  }
}

TEST(dag_text, keeps_names_of_stages_and_axes) {
  const Dag dag = testing::conv2d({.residual = true});
  const Result<Dag> back = parse_dag(to_text(dag));
  ASSERT_TRUE(back.ok());
  for (size_t s = 0; s < dag.stages.size(); ++s) {
    EXPECT_EQ(back->stages[s].name, dag.stages[s].name);
    ASSERT_EQ(back->stages[s].axes.size(), dag.stages[s].axes.size());
    for (size_t a = 0; a < dag.stages[s].axes.size(); ++a)
      EXPECT_EQ(back->stages[s].axes[a].var->name, dag.stages[s].axes[a].var->name);
    EXPECT_EQ(back->stages[s].outputs[0].buffer->name, dag.stages[s].outputs[0].buffer->name);
  }
}

TEST(dag_text, keeps_known_zeros) {
  Dag dag = testing::conv2d({.pad = 2});
  dag.params[0].zeros = {0, 2, 2, 0, 0, 1, 2, 0};
  const Result<Dag> back = parse_dag(to_text(dag));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->params[0].zeros, dag.params[0].zeros);
  EXPECT_EQ(task_key(*back), task_key(dag));
  EXPECT_EQ(parse_dag(to_text(testing::conv2d({.pad = 2})))->params[0].zeros,
            std::vector<int64_t>());
}

TEST(dag_text, keeps_that_sums_are_plain) {
  Dag dag = testing::gemm(5, 6, 7);
  const uint64_t key = task_key(dag);
  dag.stages[0].plain_sums = true;
  const Result<Dag> back = parse_dag(to_text(dag));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(back->stages[0].plain_sums);
  EXPECT_EQ(task_key(*back), task_key(dag));
  EXPECT_NE(task_key(dag), key);
}

TEST(dag_text, computes_the_same) {
  for (const Dag& dag : usual_dags()) {
    const Result<Dag> back = parse_dag(to_text(dag));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(ir::print(naive_program(*back)), ir::print(naive_program(dag)));
  }
}

TEST(dag_text, refuses_what_is_no_dag) {
  EXPECT_FALSE(parse_dag("conv2d data[1,9,9,512] -> out[1,7,7,512]").ok());
  EXPECT_FALSE(parse_dag("program dag {\n phase {\n }\n}\n").ok());
  const char* const kNoLoop =
      "program \"dag out\" {\n output out: f32[2]\n phase {\n extern \"a - i\"()\n out[0] = 1.0\n }\n}\n";
  const Result<Dag> no_loop = parse_dag(kNoLoop);
  ASSERT_FALSE(no_loop.ok());
  EXPECT_EQ(no_loop.status().message(), "stage a: there is no loop for axis i");
}

}  // namespace
}  // namespace hone::compute
