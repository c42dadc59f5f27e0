#include "hone/compute/at_origin.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/base/rng.h"
#include "hone/ir/interpreter.h"

namespace hone::compute {
namespace {

using Dims = std::vector<int64_t>;

// Twice x[rows, n], written from `offset` on into a result of another shape.
Dag part(const Dims& x, const Dims& result, const Dims& offset) {
  DagBuilder b;
  const ir::BufferPtr in = b.input("data", x), out = b.output("out", result);
  std::vector<Axis> axes;
  for (size_t d = 0; d < x.size(); ++d) axes.push_back(make_axis("a" + std::to_string(d), x[d]));
  Dims shape(result.size() - x.size(), 1);
  shape.insert(shape.end(), x.begin(), x.end());
  const std::vector<ir::Expr> at = variables(axes);
  std::vector<ir::Expr> write(result.size() - x.size(), ir::constant(0));
  write.insert(write.end(), at.begin(), at.end());
  Stage stage{.name = "double", .op = "double", .axes = axes};
  const View view(out, offset, shape);
  stage.outputs.push_back({.buffer = out, .write = view.at(write), .value = ir::load(in, at) * 2});
  b.add(std::move(stage));
  return std::move(b).build().value();
}

// Expects the task at the origin to make what the original writes from `offset` on.
void expect_same(const Dag& dag, int64_t offset, int seed) {
  const auto made = at_origin(dag, 64);
  ASSERT_TRUE(made);
  EXPECT_TRUE(verify(made->dag).ok()) << verify(made->dag).message();
  EXPECT_EQ(made->offsets, (Dims{0, offset}));
  EXPECT_EQ(made->offsets[1] % 64, 0);
  Rng rng(static_cast<uint64_t>(seed));
  std::vector<Tensor> whole, own;
  for (const Dag* of : {&dag, &made->dag}) {
    std::vector<Tensor>& arguments = of == &dag ? whole : own;
    for (const ir::Param& param : of->params)
      arguments.emplace_back(param.buffer->dtype, param.buffer->shape);
  }
  for (int64_t i = 0; i < whole[0].size(); ++i) {
    whole[0].set(i, rng.uniform());
    own[0].set(i, whole[0].at(i));
  }
  ASSERT_TRUE(ir::run(naive_program(dag), whole).ok());
  ASSERT_TRUE(ir::run(naive_program(made->dag), own).ok());
  const int64_t begin = offset / 4;
  for (int64_t i = 0; i < whole[1].size(); ++i) {
    // Elements that are not written stay NaN.
    const bool inside = i >= begin && i < begin + own[1].size();
    const double expected = inside ? own[1].at(i - begin) : std::nan("");
    const double found = whole[1].at(i);
    EXPECT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected))) << i;
  }
}

TEST(at_origin, steps_of_a_recurrent_net_are_one_task) {
  const Dag first = part({2, 16}, {5, 2, 2, 16}, {0, 0, 0, 0});
  const Dag other = part({2, 16}, {5, 2, 2, 16}, {3, 1, 0, 0});
  EXPECT_NE(task_key(first), task_key(other));
  EXPECT_EQ(task_key(at_origin(first, 64)->dag), task_key(at_origin(other, 64)->dag));
  EXPECT_EQ(at_origin(other, 64)->fixed[1], 2u);
  EXPECT_FALSE(at_origin(other, 64)->shifted[1]);
  expect_same(first, 0, 1);
  expect_same(other, (3 * 2 + 1) * 2 * 16 * 4, 2);
}

TEST(at_origin, what_is_left_of_the_alignment_lies_before_the_elements) {
  // Rows of 6 elements, 24 bytes: row 3 begins 8 bytes behind a multiple of 64.
  const Dag dag = part({6}, {8, 6}, {3, 0});
  const auto made = at_origin(dag, 64);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->dag.params[1].buffer->shape, (Dims{1, 8}));
  EXPECT_TRUE(made->shifted[1]);
  expect_same(dag, 64, 3);
  EXPECT_EQ(task_key(made->dag), task_key(at_origin(part({6}, {16, 6}, {11, 0}), 64)->dag))
      << "8 rows on, the bytes that are left are the same";
  EXPECT_NE(task_key(made->dag), task_key(at_origin(part({6}, {8, 6}, {4, 0}), 64)->dag));
}

TEST(at_origin, rows_of_a_result_may_begin_behind_others) {
  const Dag dag = part({2, 16}, {6, 16}, {2, 0});
  const auto made = at_origin(dag, 64);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->fixed[1], 0u);
  EXPECT_TRUE(made->shifted[1]) << "of its rows";
  expect_same(dag, 2 * 16 * 4, 4);
}

TEST(at_origin, what_is_no_block_stays) {
  EXPECT_FALSE(at_origin(part({4, 16}, {4, 16}, {0, 0}), 64)) << "the whole result";
  EXPECT_FALSE(at_origin(part({4, 16}, {4, 32}, {0, 16}), 64)) << "columns";
  EXPECT_FALSE(at_origin(part({2, 6}, {8, 2, 6}, {1, 0, 0}), 64))
      << "several rows that begin between two multiples of the alignment";
}

}  // namespace
}  // namespace hone::compute
