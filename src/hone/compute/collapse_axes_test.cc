#include "hone/compute/collapse_axes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"

namespace hone::compute {
namespace {

using Indices = std::vector<ir::Expr>;

struct Case {
  DagBuilder b;
  std::vector<Axis> axes = {make_axis("n", 2), make_axis("c", 3), make_axis("h", 4),
                            make_axis("w", 5)};
  Indices v = variables(axes);
  ir::BufferPtr x = b.input("x", {2, 3, 4, 5});

  // relu(value) + x, in two stages.
  Dag dag(const ir::Expr& value, const View& out) {
    const ir::BufferPtr middle = b.intermediate("relu", {2, 3, 4, 5});
    b.pointwise("relu", axes, View(middle), ir::max(value, ir::constant_float(0)));
    const auto second = std::vector<Axis>{make_axis("n", 2), make_axis("c", 3), make_axis("h", 4),
                                          make_axis("w", 5)};
    const Indices u = variables(second);
    b.pointwise("add", second, out, ir::load(middle, u) + ir::load(x, u));
    return testing::finish(std::move(b));
  }
  Dag dag(const ir::Expr& value) { return dag(value, View(b.output("y", {2, 3, 4, 5}))); }
};

std::vector<int64_t> extents(const Dag& dag) {
  std::vector<int64_t> result;
  for (const Axis& axis : dag.stages.back().axes) result.push_back(axis.extent);
  return result;
}

// The collapsed Dag is valid and computes the same on the same memory; its extents.
std::vector<int64_t> collapsed(const Dag& dag) {
  const Dag result = collapse_axes(dag);
  EXPECT_TRUE(verify(result).ok()) << verify(result).message();
  const ir::Program programs[] = {naive_program(dag), naive_program(result)};
  std::vector<Tensor> args = ir::random_arguments(programs[0], 1);
  std::vector<Tensor> others;
  for (size_t i = 0; i < args.size(); ++i)
    others.push_back(args[i].clone().reshaped(programs[1].params[i].buffer->shape));
  EXPECT_TRUE(ir::run(programs[0], args).ok());
  EXPECT_TRUE(ir::run(programs[1], others).ok());
  for (size_t i = 0; i < args.size(); ++i) {
    for (int64_t e = 0; e < args[i].size(); ++e) {
      if (!std::isnan(args[i].at(e))) {
        EXPECT_EQ(args[i].at(e), others[i].at(e)) << i << " " << e;
      }
    }
  }
  return extents(result);
}

using Extents = std::vector<int64_t>;

TEST(collapse_axes, dense_operands_are_one_axis) {
  Case c;
  EXPECT_EQ(collapsed(c.dag(ir::load(c.x, c.v))), (Extents{120}));
}

TEST(collapse_axes, a_broadcast_operand_keeps_its_axes_apart) {
  Case channel;
  const auto bias = channel.b.constant("bias", {3});
  EXPECT_EQ(collapsed(channel.dag(ir::load(channel.x, channel.v) + ir::load(bias, {channel.v[1]}))),
            (Extents{2, 3, 20}));
  Case gate;
  const auto scale = gate.b.input("scale", {2, 3, 1, 1});
  const Indices at = {gate.v[0], gate.v[1], ir::constant(0), ir::constant(0)};
  EXPECT_EQ(collapsed(gate.dag(ir::load(gate.x, gate.v) * ir::load(scale, at))), (Extents{6, 20}));
}

// The axis behind an operand's last index is none of its dimensions, whatever lies in memory behind
// its shape: mostly the size of the next block of the heap, which these extents are.
TEST(collapse_axes, an_operand_without_the_last_axis_keeps_it_apart) {
  for (const int64_t last : {2, 33, 49, 65, 81, 97, 113, 129, 145, 161}) {
    DagBuilder b;
    const std::vector<Axis> axes = {make_axis("n", 2), make_axis("c", 3), make_axis("h", 4),
                                    make_axis("w", last)};
    const Indices v = variables(axes);
    const ir::BufferPtr x = b.input("x", {2, 3, 4, last}), bias = b.input("bias", {2, 3, 4});
    const ir::BufferPtr y = b.output("y", {2, 3, 4, last});
    b.pointwise("add", axes, View(y), ir::load(x, v) + ir::load(bias, {v[0], v[1], v[2]}));
    EXPECT_EQ(collapsed(testing::finish(std::move(b))), (Extents{24, last}));
  }
}

TEST(collapse_axes, a_window_ends_a_run) {
  Case padded;
  const View inside(padded.b.output("y", {2, 3, 6, 7}), {0, 0, 1, 1}, {2, 3, 4, 5});
  EXPECT_EQ(collapsed(padded.dag(ir::load(padded.x, padded.v), inside)), (Extents{6, 4, 5}));
  Case first;  // a buffer with room behind the outermost axis of the run
  const View start(first.b.output("y", {2, 7, 4, 5}), {0, 0, 0, 0}, {2, 3, 4, 5});
  EXPECT_EQ(collapsed(first.dag(ir::load(first.x, first.v), start)), (Extents{2, 60}));
}

TEST(collapse_axes, transposed_operands_and_values_that_name_an_axis_stay) {
  Case transposed;
  const auto other = transposed.b.input("other", {5, 3, 4, 2});
  const Indices& v = transposed.v;
  EXPECT_EQ(collapsed(transposed.dag(ir::load(other, {v[3], v[1], v[2], v[0]}))),
            (Extents{2, 12, 5}));
  Case named;
  const ir::Expr value = ir::load(named.x, named.v) * ir::cast(DType::kF32, named.v[2]);
  EXPECT_EQ(collapsed(named.dag(value)), (Extents{6, 4, 5}));
}

TEST(collapse_axes, a_buffer_that_is_read_in_two_ways_is_split_in_one) {
  Case c;
  const auto square = c.b.input("square", {2, 3, 3, 5});
  const Indices& v = c.v;
  // [n, c, c, w] joins nothing that [n, c, 0, w] must keep apart.
  EXPECT_EQ(collapsed(c.dag(ir::load(square, {v[0], v[1], ir::constant(0), v[3]}))),
            (Extents{6, 4, 5}));
}

// The place of each column's largest element, down dimension 1.
TEST(collapse_axes, columns_whose_places_are_found_are_one_axis) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("x", {2, 3, 4, 5});
  const ir::BufferPtr place = b.intermediate("place", {2, 4, 5}, DType::kI32),
                      most = b.intermediate("most", {2, 4, 5});
  Stage find{.name = "find", .op = "arg_max"};
  find.axes = {make_axis("n", 2), make_axis("h", 4), make_axis("w", 5)};
  find.reduce = {make_axis("r", 3)};
  const Indices at = variables(find.axes);
  const ir::Expr r = ir::variable(find.reduce[0].var);
  const ir::Expr element = ir::load(x, {at[0], r, at[1], at[2]});
  const auto choose = [&](const ir::Expr& taken, const ir::Expr& p, const ir::Expr& v) {
    return std::pair{ir::select(taken, p, ir::load(place, at)),
                     ir::select(taken, v, ir::load(most, at))};
  };
  const auto other_place = ir::make_buffer("other_place", DType::kI32, {2, 4, 5}),
             other_most = ir::make_buffer("other_most", DType::kF32, {2, 4, 5});
  const auto [new_place, new_most] =
      choose(ir::less(ir::load(most, at), element), ir::cast(DType::kI32, r), element);
  const auto [joint_place, joint_most] =
      choose(ir::less(ir::load(most, at), ir::load(other_most, at)), ir::load(other_place, at),
             ir::load(other_most, at));
  find.outputs = {
      {place, at, new_place, ir::constant_int(0, DType::kI32), joint_place, other_place},
      {most, at, new_most, ir::constant_float(-1e30), joint_most, other_most}};
  b.add(std::move(find));
  const std::vector<Axis> axes = {make_axis("n", 2), make_axis("h", 4), make_axis("w", 5)};
  b.pointwise("cast", axes, View(b.output("y", {2, 4, 5}, DType::kI64)),
              ir::cast(DType::kI64, ir::load(place, variables(axes))));
  EXPECT_EQ(collapsed(testing::finish(std::move(b))), (Extents{2, 20}));
}

// x - the largest of it along dimension `reduced`, then * scale; both stages name the axes alike.
Dag less_largest(size_t reduced, const std::vector<int64_t>& shape, size_t scaled = 4) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("x", shape);
  const auto axes_but = [&](size_t without) {
    std::vector<Axis> axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d != without) axes.push_back(make_axis(std::string(1, "nchw"[d]), shape[d]));
    }
    return axes;
  };
  const auto some = axes_but(reduced);
  std::vector<int64_t> fewer = shape;
  fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(reduced));
  const ir::BufferPtr largest = b.intermediate("largest", fewer);
  const Axis r = make_axis("r", shape[reduced]);
  Indices at = variables(some);
  at.insert(at.begin() + static_cast<std::ptrdiff_t>(reduced), ir::variable(r.var));
  b.max("", some, {r}, View(largest), ir::load(x, at));
  const auto all = axes_but(shape.size());
  const Indices v = variables(all);
  Indices of_largest = v;
  of_largest.erase(of_largest.begin() + static_cast<std::ptrdiff_t>(reduced));
  ir::Expr value = ir::load(x, v) - ir::load(largest, of_largest);
  if (scaled < shape.size())
    value = value * ir::load(b.constant("scale", {shape[scaled]}), {v[scaled]});
  b.pointwise("sub", all, View(b.output("y", shape)), value);
  return testing::finish(std::move(b));
}

TEST(collapse_axes, columns_that_are_reduced_are_one_axis) {
  EXPECT_EQ(collapsed(less_largest(1, {2, 3, 4, 5})), (Extents{2, 3, 20}));
  EXPECT_EQ(collapsed(less_largest(0, {2, 3, 4, 5})), (Extents{2, 60}));
  EXPECT_EQ(collapsed(less_largest(1, {2, 3, 1, 5})), (Extents{2, 3, 5}));
}

TEST(collapse_axes, columns_that_an_operand_tells_apart_stay) {
  EXPECT_EQ(collapsed(less_largest(1, {2, 3, 4, 5}, 3)), (Extents{2, 3, 4, 5}));
  EXPECT_EQ(collapsed(less_largest(1, {2, 3, 4, 5}, 1)), (Extents{2, 3, 20}));
  EXPECT_EQ(collapsed(less_largest(0, {2, 3, 4, 5}, 1)), (Extents{2, 3, 20}));
}

TEST(collapse_axes, rows_and_channels_of_reductions_stay) {
  const Dag dags[] = {testing::softmax(4, 8, 1),     less_largest(3, {2, 3, 4, 5}),
                      less_largest(2, {2, 3, 4, 5}), testing::gemm(4, 6, 8),
                      testing::conv2d({}),           testing::depthwise(5, 7, 8, 1),
                      testing::global_pool(5, 3, 9)};
  for (const Dag& dag : dags) EXPECT_EQ(task_key(collapse_axes(dag)), task_key(dag));
}

}  // namespace
}  // namespace hone::compute
