#include "hone/compute/kernel_params.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"

namespace hone::compute {
namespace {

// first - second; `dead` params that nothing reads stand before, between and behind the operands.
Dag difference(int dead, bool second_comes_first = false) {
  DagBuilder b;
  const auto add_dead = [&](int which) {
    if (dead == which) static_cast<void>(b.input("dead", {7}));
  };
  add_dead(1);
  ir::BufferPtr operands[2];
  for (const size_t i : {size_t{0}, size_t{1}}) {
    operands[second_comes_first ? 1 - i : i] = b.input("x", {4});
    if (i == 0) add_dead(2);
  }
  const ir::BufferPtr out = b.output("y", {4});
  add_dead(3);
  const std::vector<Axis> axes = {make_axis("i", 4)};
  const std::vector<ir::Expr> at = variables(axes);
  b.pointwise("sub", axes, View(out), ir::load(operands[0], at) - ir::load(operands[1], at));
  return testing::finish(std::move(b));
}

TEST(kernel_params, dead_ones_are_removed_and_the_key_stays) {
  const Dag plain = difference(0);
  for (const int dead : {1, 2, 3}) {
    Dag dag = difference(dead);
    ASSERT_EQ(dag.params.size(), 4u);
    EXPECT_EQ(task_key(dag), task_key(plain));
    EXPECT_EQ(check_same_params(plain, dag).code(), Code::kInternal) << dead;
    EXPECT_EQ(check_same_params(dag, dag).code(), Code::kInternal) << dead;
    const std::vector<size_t> kept = remove_dead_params(dag);
    ASSERT_EQ(kept.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(kept[i], static_cast<int>(i) < dead - (dead == 3 ? 0 : 1) ? i : i + 1) << dead;
      EXPECT_EQ(dag.params[i].role, plain.params[i].role);
    }
    EXPECT_EQ(task_key(dag), task_key(plain));
    EXPECT_TRUE(check_same_params(plain, dag).ok()) << check_same_params(plain, dag).message();
  }
}

TEST(kernel_params, those_of_equal_tasks_may_have_another_order) {
  const Dag kernel = difference(0), other = difference(0, true);
  ASSERT_EQ(task_key(kernel), task_key(other));
  EXPECT_FALSE(check_same_params(kernel, other).ok());
  Dag turned = other;
  turned.params = in_order(other.params, order_like(other, kernel));
  EXPECT_TRUE(check_same_params(kernel, turned).ok());
}

TEST(kernel_params, a_param_of_another_shape_or_with_other_zeros_is_another) {
  const Dag kernel = difference(0);
  Dag zeros = kernel;
  zeros.params[0].zeros = {1, 0};
  EXPECT_FALSE(check_same_params(kernel, zeros).ok());
  EXPECT_TRUE(check_same_params(zeros, zeros).ok());
}

// An operand that only the merge of partial results reads is touched, too.
TEST(kernel_params, merges_touch_their_operands) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("x", {4, 8}), scale = b.input("scale", {4});
  const ir::BufferPtr out = b.output("y", {4});
  Stage sum{.name = "sum", .op = "sum", .axes = {make_axis("i", 4)}, .reduce = {make_axis("k", 8)}};
  const std::vector<ir::Expr> at = variables(sum.axes);
  Output output;
  output.buffer = out;
  output.write = at;
  output.other = ir::make_buffer("other", DType::kF32, {4});
  output.identity = ir::constant_float(0);
  output.value = ir::load(out, at) + ir::load(x, {at[0], ir::variable(sum.reduce[0].var)});
  output.merge = ir::load(out, at) + ir::load(output.other, at) * ir::load(scale, at);
  sum.outputs = {output};
  b.add(sum);
  Dag dag = testing::finish(std::move(b));
  EXPECT_EQ(remove_dead_params(dag), (std::vector<size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace hone::compute
