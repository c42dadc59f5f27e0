#include "hone/search/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hone/compute/dag_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/measure/verify.h"

namespace hone::search {
namespace {

using compute::testing::conv2d;

std::vector<Tensor> interpret(const compute::Dag& dag) {
  const ir::Program program = compute::naive_program(dag);
  std::vector<Tensor> arguments = task_arguments(dag, 3);
  for (size_t i = arguments.size(); i < program.params.size(); ++i) {
    arguments.emplace_back(program.params[i].buffer->dtype, program.params[i].buffer->shape);
  }
  const Status status = ir::run(program, arguments);
  EXPECT_TRUE(status.ok()) << status.message();
  return arguments;
}

// The greatest of all outputs.
double error_of(std::span<const measure::Expected> expected, std::span<const Tensor> arguments) {
  double error = 0;
  for (const measure::Expected& output : expected) {
    const Tensor& found = arguments[static_cast<size_t>(output.operand)];
    error = std::max(
        error, measure::relative_error(found.data(), output.dtype, output.places, output.values));
  }
  return error;
}

TEST(reference, accepts_what_the_interpreter_computes) {
  const compute::Dag dags[] = {conv2d({.h = 9, .w = 11, .ic = 5, .oc = 6}),
                               conv2d({.h = 7, .w = 7, .ic = 4, .oc = 8, .residual = true}),
                               compute::testing::gemm(7, 13, 9),
                               compute::testing::max_pool(7, 9, 6),
                               compute::testing::depthwise(6, 7, 10, 2),
                               compute::testing::transpose(3, 5, 9, 1)};
  for (const compute::Dag& dag : dags) {
    const std::vector<Tensor> arguments = task_arguments(dag, 3);
    const Result<std::vector<measure::Expected>> expected = reference_outputs(dag, arguments);
    ASSERT_TRUE(expected.ok()) << compute::describe(dag) << ": " << expected.status().message();
    ASSERT_EQ(expected->size(), 1U);
    EXPECT_GT((*expected)[0].values.size(), 40U);
    EXPECT_LE(error_of(*expected, interpret(dag)), 1e-5) << compute::describe(dag);
  }
}

// Sums in another order differ by a rounding to 16 bits, which is no wrong answer.
TEST(reference, allows_neighbours_where_stages_round_to_16_bits) {
  const auto product = [](DType type) {
    compute::DagBuilder b;
    const ir::BufferPtr data = b.input("data", {8, 512}, type), out = b.output("out", {8}, type);
    const auto i = compute::make_axis("i", 8), k = compute::make_axis("k", 512);
    const ir::BufferPtr sums = b.intermediate("sums", {8});
    b.sum("sums", {i}, {k}, compute::View(sums),
          ir::cast(DType::kF32, ir::load(data, {ir::variable(i.var), ir::variable(k.var)})));
    const auto j = compute::make_axis("j", 8);
    b.pointwise("round", {j}, compute::View(out),
                ir::cast(type, ir::load(sums, {ir::variable(j.var)})));
    Result<compute::Dag> dag = std::move(b).build();
    EXPECT_TRUE(dag.ok()) << dag.status().message();
    return *std::move(dag);
  };
  EXPECT_EQ(tolerance_of(product(DType::kF32), 1e-4), 1e-4);
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const double step = type == DType::kF16 ? 0x1p-10 : 0x1p-7;
    EXPECT_GT(tolerance_of(product(type), 1e-4), 2 * step);
    EXPECT_LT(tolerance_of(product(type), 1e-4), 5 * step);
    EXPECT_EQ(tolerance_of(product(type), 0.5), 0.5);
    compute::Dag of_weights = product(DType::kF32);
    of_weights.params.push_back({ir::make_buffer("weight", type, {8}), ir::Role::kConstant});
    EXPECT_EQ(tolerance_of(of_weights, 1e-4), tolerance_of(product(type), 1e-4));
  }
}

TEST(reference, known_zeros_are_zero_in_what_candidates_are_timed_with) {
  compute::Dag dag = conv2d({.h = 3, .w = 2, .ic = 2, .oc = 3});
  dag.params[0].zeros = {0, 1, 1, 0, 0, 1, 1, 0};
  const Tensor data = task_arguments(dag, 3)[0];
  for (int64_t i = 0; i < data.size(); ++i) {
    const int64_t row = i / 2 / 4, column = i / 2 % 4;
    const bool inside = row >= 1 && row < 4 && column >= 1 && column < 3;
    EXPECT_EQ(data.at(i) != 0, inside) << i;
  }
}

TEST(reference, runs_each_point_once_however_many_threads_there_are) {
  const compute::Dag dag = compute::testing::gemm(1, 40, 3000);
  const std::vector<Tensor> arguments = task_arguments(dag, 5);
  const auto one = reference_outputs(dag, arguments);
  ASSERT_TRUE(one.ok()) << one.status().message();
  const std::vector<int64_t>& places = one->front().places;
  EXPECT_EQ(std::set<int64_t>(places.begin(), places.end()).size(), places.size());
  for (int i = 0; i < 10; ++i) {
    const auto many = reference_outputs(dag, arguments, {.threads = 4});
    ASSERT_TRUE(many.ok()) << many.status().message();
    EXPECT_EQ(many->front().places, places);
    EXPECT_EQ(many->front().values, one->front().values);
  }
}

TEST(reference, rejects_one_wrong_corner) {
  const compute::Dag dag = conv2d({.h = 40, .w = 40, .ic = 3, .oc = 32, .border = 0});
  const std::vector<Tensor> arguments = task_arguments(dag, 3);
  const auto expected = reference_outputs(dag, arguments, {.points = 16, .threads = 2});
  ASSERT_TRUE(expected.ok());
  std::vector<Tensor> found = interpret(dag);
  Tensor& output = found[static_cast<size_t>((*expected)[0].operand)];
  const int64_t last = output.size() - 1;
  output.set(last, output.at(last) + 0.5);
  EXPECT_GT(error_of(*expected, found), 1e-4);
  output.set(last, NAN);
  EXPECT_GT(error_of(*expected, found), 1e-4);
}

}  // namespace
}  // namespace hone::search
