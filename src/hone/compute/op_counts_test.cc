#include "hone/compute/op_counts.h"

#include <gtest/gtest.h>

#include <tuple>

#include "hone/compute/dag_testing.h"

namespace hone::compute {
namespace {

TEST(op_counts, a_multiply_add_is_counted_as_one) {
  const OpCounts ops = count_ops(testing::gemm(4, 4, 4).stages[0]);
  EXPECT_EQ(ops.fma, 1);
  EXPECT_EQ(ops.mul, 0);
  EXPECT_EQ(ops.add, 0);
}

TEST(op_counts, axes_of_a_condition_are_tested) {
  const Axis i = make_axis("i", 4), j = make_axis("j", 8), k = make_axis("k", 3);
  const auto [vi, vj, vk] =
      std::tuple(ir::variable(i.var), ir::variable(j.var), ir::variable(k.var));
  DagBuilder b;
  const auto data = b.input("data", {4, 10}), out = b.output("out", {4, 8});
  b.sum("window", {i, j}, {k}, View(out),
        ir::select(ir::less(vj + vk, ir::constant(10)), ir::load(data, {vi, vj + vk}),
                   ir::constant_float(0)));
  const Dag dag = testing::finish(std::move(b));
  EXPECT_EQ(tested_axes(dag.stages[0]), std::vector<bool>({false, true, true}));
  EXPECT_EQ(count_ops(dag.stages[0]).select, 1);
}

}  // namespace
}  // namespace hone::compute
