// Schedules for GPUs: loops over threads, shared memory and registers of a block. What they compute
// is compared with the naive program; what they must not do is refused.
#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using namespace compute::testing;

// Each block has a tile of 16 x 8 results, each of its 4 x 4 threads 4 x 2 of them.
const std::string kProduct = product_in_threads({.m_threads = 4, .m = 4, .n_threads = 4, .n = 2});

std::string refused(const compute::Dag& dag, std::string_view text) {
  return std::string(lower_threads(dag, text).status().message());
}

TEST(threads, a_product_has_shared_copies_and_sums_in_registers) {
  for (const int64_t m : {1, 3, 16, 33}) {
    for (const int64_t n : {1, 7, 8, 17}) {
      for (const int64_t k : {1, 5, 13, 20}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", m, n, k));
        expect_threads(gemm(m, n, k), kProduct);
      }
    }
  }
}

TEST(threads, loops_and_scopes_reach_the_program) {
  const Result<ir::Program> program = lower_threads(gemm(33, 17, 13), kProduct);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = ir::print(*program);
  for (const char* part :
       {"alloc fragment matmul.acc: f32[4, 4, 4, 2]", "alloc shared data.cache: f32[16, 5]",
        "thread m.0 in 0..4", "thread n in 0..8"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(threads, rows_of_shared_memory_may_be_longer_than_what_they_hold) {
  const std::string steps = kProduct + "layout(weight.cache, [n, k+3])\n";
  expect_threads(gemm(33, 17, 13), steps);
  const Result<ir::Program> program = lower_threads(gemm(33, 17, 13), steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_NE(ir::print(*program).find("alloc shared weight.cache: f32[8, 8]"), std::string::npos);
  EXPECT_NE(
      refused(gemm(33, 17, 13), "cache_read(weight, matmul)\nlayout(weight.cache, [n, k+3])\n")
          .find("weight.cache has padded rows, but is not in shared memory"),
      std::string::npos);
}

// What is beyond the end of a padded tile is read from shared memory, but not from the task's data.
TEST(threads, a_shared_copy_of_a_padded_tile_reads_what_exists) {
  const Result<ir::Program> program = lower_threads(gemm(17, 9, 4), kProduct);
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::vector<Tensor> args = integer_arguments(*program, 1);
  ir::TouchReport report;
  ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
  for (size_t i = 0; i < program->params.size(); ++i) {
    const ir::Param& param = program->params[i];
    const ir::Touch* touch = report.find(param.buffer, param.role == ir::Role::kOutput);
    ASSERT_NE(touch, nullptr) << param.buffer->name;
    EXPECT_EQ(touch->distinct, param.buffer->num_elements()) << param.buffer->name;
  }
}

TEST(threads, an_epilogue_runs_in_the_tiles_of_its_sum) {
  ConvShape shape;
  shape.h = 7, shape.w = 9, shape.ic = 5, shape.oc = 11, shape.residual = true;
  expect_threads(conv2d(shape), "inline(add)\n" + convolution_in_threads());
}

TEST(threads, a_thread_has_stages_of_its_own) {
  for (const int64_t m : {1, 7, 13}) {
    expect_threads(gemm(m, 17, 31), R"(
cache_write(matmul)
fuse(matmul, [m, n])
split(matmul, m@n, [32])
parallel(matmul, m@n.0)
bind(matmul, m@n.1, thread)
compute_at(matmul.acc, matmul, m@n.1)
scope(matmul.acc, stack)
)");
  }
}

TEST(threads, a_sum_has_partial_sums_in_shared_memory) {
  for (const int64_t k : {1, 7, 97}) {
    expect_threads(gemm(3, 5, k), R"(
cache_write(matmul)
rfactor(matmul.acc, k, 8, strided)
split(matmul, n, [2])
parallel(matmul, m)
bind(matmul, n.1, thread)
compute_at(matmul.acc, matmul, n.0)
scope(matmul.acc, shared)
bind(matmul.acc, n, thread)
compute_at(matmul.acc.rf, matmul, n.0)
scope(matmul.acc.rf, shared)
reorder(matmul.acc.rf, [ki, n, m, k])
bind(matmul.acc.rf, ki, thread)
bind(matmul.acc.rf, n, thread)
)");
  }
}

TEST(threads, warps_and_lanes) {
  expect_threads(gemm(9, 70, 3), R"(
split(matmul, m, [4])
split(matmul, n, [32])
reorder(matmul, [m.0, n.0, m.1, n.1, k])
parallel(matmul, m.0)
bind(matmul, m.1, warp)
bind(matmul, n.1, lane)
)");
}

TEST(threads, a_stage_of_one_point_gets_a_loop_for_its_thread) {
  compute::DagBuilder b;
  const auto data = b.input("data", {13}), out = b.output("out", {});
  const auto r = compute::make_axis("r", 13);
  b.sum("total", {}, {r}, compute::View(out), ir::load(data, {ir::variable(r.var)}));
  const compute::Dag dag = built(std::move(b));
  expect_threads(dag, "bind(total, one, thread)");
  const Result<ir::Program> program = lower_threads(dag, "bind(total, one, thread)");
  EXPECT_NE(ir::print(*program).find("thread one in 0..1"), std::string::npos);
}

// Each thread has a copy of the running maximum and total of its rows beside its part of the sums.
TEST(threads, a_stage_of_several_results_is_in_registers) {
  std::string steps = R"(
online_softmax(sums, 4)
split(attention, m, [2, 2])
split(attention, d, [3])
reorder(attention, [h, m.0, m.1, d.0, m.2, d.1])
fuse(attention, [h, m.0])
parallel(attention, h@m.0)
bind(attention, m.1, thread)
bind(attention, d.0, thread)
unroll(attention, m.2)
unroll(attention, d.1)
compute_at(sums, attention, h@m.0)
scope(sums, fragment)
split(sums, m, [2])
split(sums, d, [3])
reorder(sums, [h, t, m.0, d.0, m.1, d.1])
bind(sums, m.0, thread)
bind(sums, d.0, thread)
unroll(sums, m.1)
unroll(sums, d.1)
)";
  for (const char* stage : {"sums.part", "total", "weights", "most", "masked", "scores"}) {
    steps +=
        fmt::format("compute_at({0}, sums, t)\nscope({0}, shared)\nbind({0}, m, thread)\n", stage);
  }
  for (const int64_t keys : {5, 12}) {
    for (const int64_t depth : {1, 5, 6}) expect_threads(attention(2, 7, keys, depth), steps, 1e-5);
  }
  const Result<ir::Program> program = lower_threads(attention(2, 7, 12, 6), steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::string text = ir::print(*program);
  for (const char* part :
       {"alloc fragment most.run: f32[2, 2, 2, 1]", "alloc fragment sums: f32[2, 2, 2, 1, 3]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(refused(attention(2, 7, 12, 6), steps + "layout(sums, [m, h])\n").find("sums"),
            std::string::npos);
}

// Results of a point that move with both, with one and with none of the loops over threads: of
// those that have the same one, the first thread stores it.
TEST(threads, the_first_thread_stores_what_its_neighbours_have_too) {
  compute::DagBuilder b;
  const auto x = b.input("x", {3, 4, 5});
  compute::Stage stage;
  stage.name = "stage";
  stage.axes = {compute::make_axis("m", 3), compute::make_axis("a", 4), compute::make_axis("b", 5)};
  std::vector<ir::Expr> at;
  for (const compute::Axis& axis : stage.axes) at.push_back(ir::variable(axis.var));
  const ir::Expr zero = ir::constant(0);
  const auto output = [&](const char* name, std::vector<int64_t> shape, std::vector<ir::Expr> write,
                          const ir::Expr& value) {
    stage.outputs.push_back({b.output(name, std::move(shape)), std::move(write), value});
  };
  output("all", {3, 4, 5}, at, ir::load(x, at) + ir::constant_float(1));
  output("of_a", {3, 4}, {at[0], at[1]}, ir::load(x, {at[0], at[1], zero}));
  output("of_b", {3, 5}, {at[0], at[2]}, ir::load(x, {at[0], zero, at[2]}));
  output("of_none", {3}, {at[0]}, ir::load(x, {at[0], zero, zero}));
  b.add(std::move(stage));
  const compute::Dag dag = built(std::move(b));
  const std::string steps = "bind(stage, a, thread)\nbind(stage, b, thread)";
  expect_threads(dag, steps);
  // All of them would store the same, but race for it.
  const Result<ir::Program> program = lower_threads(dag, steps);
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::vector<Tensor> args = integer_arguments(*program, 1);
  const Status ran = ir::run(*program, args, {.check_races = true});
  EXPECT_TRUE(ran.ok()) << ran.message();
}

TEST(threads, says_what_is_wrong) {
  const std::string base = R"(
cache_write(matmul)
parallel(matmul, m)
bind(matmul, n, thread)
)";
  const std::pair<std::string, const char*> cases[] = {
      {"bind(matmul, k, thread)", "loop k is a reduction"},
      {"bind(matmul, x, thread)", "matmul has no loop x"},
      {"bind(matmul, m, thread)\nbind(matmul, m, thread)", "loop m is annotated"},
      {"split(matmul, m, [2])\nreorder(matmul, [m.0, n, m.1])\nbind(matmul, m.0, thread)\n"
       "bind(matmul, m.1, thread)",
       "loop m.1 over threads does not follow m.0"},
      {"bind(matmul, n, lane)", "expected one loop over lanes inside one over warps"},
      {base + "compute_at(matmul.acc, matmul, m)", "has no loop over threads"},
      {base + "compute_at(matmul.acc, matmul, m)\nbind(matmul.acc, n, thread)",
       "computed by a block, where its scope is thread, expected shared or fragment"},
      {base + "compute_at(matmul.acc, matmul, n)",
       "computed by a thread, where its scope is thread, expected stack or register"},
      {base + "compute_at(matmul.acc, matmul, n)\nscope(matmul.acc, stack)\n"
              "bind(matmul.acc, n, thread)",
       "computed by one thread, but its loop n has several"},
      {"cache_write(matmul)\nparallel(matmul, m)\ncompute_at(matmul.acc, matmul, m)\n"
       "scope(matmul.acc, shared)",
       "is shared, but no loop there runs on threads"},
      {"cache_write(matmul)\nbind(matmul, m, thread)\nbind(matmul, n, thread)\n"
       "compute_at(matmul.acc, matmul, m)\nscope(matmul.acc, stack)",
       "between the loops over threads"},
      {base + "compute_at(matmul.acc, matmul, m)\nscope(matmul.acc, fragment)\n"
              "bind(matmul.acc, n, thread)",
       "its dimension 0 of 1 is not the loop n of matmul.acc over 8 threads"},
      {base +
           "compute_at(matmul.acc, matmul, m)\nscope(matmul.acc, fragment)\n"
           "layout(matmul.acc, [m, n])\nbind(matmul.acc, m, thread)\nbind(matmul.acc, n, thread)",
       "accesses it in 1 loops over threads"},
      {base + "compute_at(matmul.acc, matmul, m)\nscope(matmul.acc, fragment)\n"
              "layout(matmul.acc, [n/4, m, n%4])\nsplit(matmul.acc, n, [4])\n"
              "bind(matmul.acc, n.0, thread)",
       "is fragment, but loop n.1 of matmul.acc is not unrolled"},
  };
  for (const auto& [steps, message] : cases) {
    const std::string why = refused(gemm(4, 8, 5), steps);
    EXPECT_NE(why.find(message), std::string::npos) << steps << "\n" << why;
  }
  EXPECT_NE(refused(gemm(4, 8, 5), "cache_read(weight, matmul)\nbind(weight.cache, n, thread)")
                .find("runs at compile time"),
            std::string::npos);
}

}  // namespace
}  // namespace hone::schedule
