#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

TEST(gpu_points, odd_products_and_rows) {
  for (const int64_t n : kOdd) {
    expect_points(gemm(n, 34 - n % 32, 5), 2);
    expect_points(softmax(3, n, 1), 2);
    expect_points(softmax(2, n, 5), 1);
    expect_points(arg_max(5, n, 3), 1);
    expect_points(running_sum(7, n), 1);
    expect_points(sum_of_two(n, 12), 2);
  }
}

TEST(gpu_points, odd_images) {
  for (const int64_t n : {1, 2, 3, 7, 13}) {
    expect_points(depthwise(n + 2, n, 8, 1 + n % 2), 3);
    expect_points(max_pool(n + 2, n + 4, 4), 2);
    expect_points(global_pool(n, n + 2, 6), 2);
    expect_points(transpose(n, 5, 8, 1), 3);
    expect_points(grouped_conv2d(n, 5, 3, 2, 4, 1), 2);
    ConvShape shape;
    shape.h = n + 2, shape.w = 5, shape.residual = true;
    expect_points(conv2d(shape), 2);
  }
}

TEST(gpu_points, attention_is_phases) {
  expect_points(attention(2, 7, 13, 8), 2);
  expect_points(inverted_residual(7, 5, 3, 12, 4), 2);
}

// Each thread of a sort has arrays of its own.
TEST(gpu_points, blocks_have_few_threads_if_each_needs_much_memory) {
  const auto threads_of = [](int64_t elements) {
    compute::Stage stage;
    stage.name = "body";
    stage.axes = {compute::make_axis("i", 64)};
    compute::DagBuilder b;
    const ir::BufferPtr data = b.input("data", {64}), out = b.output("out", {64}),
                        own = ir::make_buffer("own", DType::kF32, {elements}, ir::Scope::kThread);
    const ir::Expr i = ir::variable(stage.axes[0].var);
    stage.body = {
        ir::make_alloc(own, {ir::make_store(own, {ir::constant(3)}, ir::load(data, {i})),
                             ir::make_store(out, {i}, ir::load(own, {ir::constant(3)}))})};
    stage.extern_reads = {data};
    stage.outputs.push_back({.buffer = out});
    b.add(std::move(stage));
    const compute::Dag dag = schedule::built(std::move(b));
    expect_points(dag, 2);
    const Result<Space> space = Space::create(dag, small_gpu());
    return space.ok() ? space->decisions(0)[0].options.back() : 0;
  };
  EXPECT_EQ(threads_of(4), 1024);
  EXPECT_EQ(threads_of(1 << 16), 2);
  EXPECT_EQ(threads_of(1 << 20), 1);
}

// A result without axes is computed by one thread.
TEST(gpu_points, a_single_result) {
  compute::DagBuilder b;
  const auto data = b.input("data", {37}), out = b.output("out", {});
  const auto r = compute::make_axis("r", 37);
  b.sum("total", {}, {r}, compute::View(out), ir::load(data, {ir::variable(r.var)}));
  expect_points(schedule::built(std::move(b)), 1);
}

TEST(gpu_points, the_default_fills_the_device) {
  const compute::Dag dag = sum_of_two(1 << 10, 1 << 10);
  target::Target target = small_gpu();
  target.gpu().sms = 100;
  const auto steps_of = [&] {
    const Result<Space> space = Space::create(dag, target);
    return schedule::to_string(space->steps(space->default_point()));
  };
  EXPECT_NE(steps_of().find(", [256], mask)"), std::string::npos) << steps_of();
  EXPECT_NE(steps_of().find("vectorize"), std::string::npos) << steps_of();
  target.gpu().sms = 1 << 13;
  EXPECT_NE(steps_of().find(", [128], mask)"), std::string::npos) << steps_of();
  EXPECT_EQ(steps_of().find("vectorize"), std::string::npos) << steps_of();
}

}  // namespace
}  // namespace hone::space
