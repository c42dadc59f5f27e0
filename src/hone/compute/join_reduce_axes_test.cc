#include "hone/compute/join_reduce_axes.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"

namespace hone::compute {
namespace {

using Extents = std::vector<int64_t>;

// The sum over so many of the last axes of [3, 4, 5, 6], or over others in their order.
Dag sum_over(const std::vector<size_t>& dims, bool twice = false) {
  const Extents shape = {3, 4, 5, 6};
  DagBuilder b;
  const ir::BufferPtr x = b.input("x", shape);
  std::vector<Axis> axes, reduce;
  std::vector<ir::Expr> at(4);
  for (size_t d = 0; d < 4; ++d) {
    const bool reduces = std::find(dims.begin(), dims.end(), d) != dims.end();
    (reduces ? reduce : axes).push_back(make_axis("i" + std::to_string(d), shape[d]));
    at[d] = ir::variable((reduces ? reduce : axes).back().var);
  }
  Extents kept;
  for (const Axis& axis : axes) kept.push_back(axis.extent);
  const ir::Expr value = ir::load(x, at);
  b.sum("sum", axes, reduce, View(b.output("y", kept)),
        twice ? value * ir::load(x, {at[0], ir::constant(1), at[2], at[3]}) : value);
  return testing::finish(std::move(b));
}

// The extents of the reduction once joined; the result is valid and computes the same.
Extents joined(const Dag& dag) {
  const Dag result = join_reduce_axes(dag);
  EXPECT_TRUE(verify(result).ok()) << verify(result).message();
  const ir::Program programs[] = {naive_program(dag), naive_program(result)};
  std::vector<Tensor> args = ir::random_arguments(programs[0], 1), others;
  for (size_t i = 0; i < args.size(); ++i)
    others.push_back(args[i].clone().reshaped(programs[1].params[i].buffer->shape));
  EXPECT_TRUE(ir::run(programs[0], args).ok());
  EXPECT_TRUE(ir::run(programs[1], others).ok());
  for (int64_t e = 0; e < args[1].size(); ++e) EXPECT_EQ(args[1].at(e), others[1].at(e)) << e;
  Extents extents;
  for (const Axis& axis : result.stages.back().reduce) extents.push_back(axis.extent);
  return extents;
}

TEST(join_reduce_axes, of_contiguous_elements_are_one) {
  EXPECT_EQ(joined(sum_over({2, 3})), (Extents{30}));
  EXPECT_EQ(joined(sum_over({1, 2, 3})), (Extents{120}));
  EXPECT_EQ(joined(sum_over({0, 1, 2, 3})), (Extents{360}));
  EXPECT_EQ(joined(sum_over({0, 2, 3})), (Extents{3, 30}));
}

TEST(join_reduce_axes, that_lie_apart_stay_as_they_are) {
  EXPECT_EQ(joined(sum_over({3})), (Extents{6}));
  EXPECT_EQ(joined(sum_over({1, 3})), (Extents{4, 6}));
  EXPECT_EQ(joined(sum_over({1, 2})), (Extents{4, 5})) << "down columns";
  EXPECT_EQ(joined(sum_over({2, 3}, true)), (Extents{5, 6})) << "an operand read in two ways";
  const Dag conv = testing::conv2d({});
  EXPECT_EQ(join_reduce_axes(conv).stages.front().reduce.size(), conv.stages.front().reduce.size());
  const Dag pool = testing::global_pool(5, 3, 9);
  EXPECT_EQ(join_reduce_axes(pool).stages.front().reduce.size(), pool.stages.front().reduce.size());
}

TEST(join_reduce_axes, may_be_the_first_rows_of_the_operand) {
  const auto rows = [](int64_t from) {
    DagBuilder b;
    const ir::BufferPtr x = b.input("x", {3, 5, 6}), y = b.output("y", {3});
    const std::vector<Axis> axes = {make_axis("n", 3)};
    const std::vector<Axis> reduce = {make_axis("h", 4), make_axis("w", 6)};
    b.sum("sum", axes, reduce, View(y),
          ir::load(x, {ir::variable(axes[0].var), ir::variable(reduce[0].var) + from,
                       ir::variable(reduce[1].var)}));
    return testing::finish(std::move(b));
  };
  EXPECT_EQ(joined(rows(0)), (Extents{24}));
  EXPECT_EQ(joined(rows(1)), (Extents{4, 6})) << "others";
}

}  // namespace
}  // namespace hone::compute
