#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

std::string default_steps(const compute::Dag& dag, const target::Target& target) {
  const Result<Space> space = Space::create(dag, target);
  EXPECT_TRUE(space.ok()) << space.status().message();
  return schedule::to_string(space->steps(space->default_point()));
}

TEST(gpu_contraction, products_of_odd_extents) {
  for (const int64_t n : kOdd) {
    expect_points(gemm(n, 98 - n, 17), 6);
    expect_points(gemm(33, n, 13), 3);
    expect_points(gemm(17, 24, n), 3);
    expect_points(product_of_two(2, n, 13, 31), 3);
    expect_points(few_columns(31, n, 17, n % 2 == 0), 2);
  }
}

TEST(gpu_contraction, convolutions_of_odd_extents) {
  for (const int64_t n : {1, 2, 3, 7, 13}) {
    ConvShape shape;
    shape.h = n + 2, shape.w = 15 - n, shape.ic = n, shape.oc = 17, shape.residual = n % 2 == 0;
    expect_points(conv2d(shape), 6, 1e-5, small_gpu(), 2);
    shape.stride = 2, shape.ic = 5, shape.oc = n;
    expect_points(conv2d(shape), 4, 1e-5, small_gpu(), 2);
    expect_points(grouped_conv2d(n + 1, 7, 3, 5, 8, 1 + n % 2), 4, 1e-5, small_gpu(), 2);
    expect_points(depthwise(n + 2, 9, 12, 1 + n % 2), 4, 1e-5, small_gpu(), 2);
  }
  expect_points(inverted_residual(7, 5, 3, 12, 4), 3, 1e-5, small_gpu(), 2);
}

// As above, on a GPU with asynchronous copies: of chunks up to three ahead, and of parts of sums.
target::Target async_gpu() {
  target::Target target = small_gpu();
  target.gpu().async_copy = true;
  return target;
}

TEST(gpu_contraction, copies_work_ahead_asynchronously) {
  for (const int64_t n : {1, 7, 31, 97}) {
    expect_points(gemm(n, 98 - n, 64), 6, 1e-5, async_gpu());
    expect_points(gemm(33, 16, n), 4, 1e-5, async_gpu());
  }
  for (const int64_t n : {2, 5, 7}) {
    ConvShape shape;
    shape.h = n + 2, shape.w = 12 - n, shape.ic = 32 + n % 2, shape.oc = 17 - n % 2;
    expect_points(conv2d(shape), 4, 1e-5, async_gpu(), 2);
    expect_points(depthwise(n + 2, 9, 12, 1 + n % 2), 3, 1e-5, async_gpu(), 2);
  }
}

// Changes some decisions of a point; returns whether it has them all with these values.
bool choose(const Space& space, const std::vector<std::pair<std::string_view, int64_t>>& choices,
            Point& point) {
  const std::vector<Decision>& decisions = space.decisions(point.sketch);
  return std::all_of(choices.begin(), choices.end(), [&](const auto& choice) {
    bool found = false;
    for (size_t d = 0; d < decisions.size(); ++d) {
      const auto& options = decisions[d].options;
      const auto option = std::find(options.begin(), options.end(), choice.second);
      if (decisions[d].role_name() != choice.first || option == options.end()) continue;
      point.choices[d] = static_cast<int>(option - options.begin());
      found = true;
    }
    return found;
  });
}

// Runs what the first default point that has all of these decisions becomes with their values.
void expect_choices(const compute::Dag& dag, const target::Target& target,
                    const std::vector<std::pair<std::string_view, int64_t>>& choices) {
  SCOPED_TRACE(compute::describe(dag));
  const Result<Space> space = Space::create(dag, target);
  ASSERT_TRUE(space.ok()) << space.status().message();
  for (Point point : space->default_points()) {
    if (!choose(*space, choices, point)) continue;
    ASSERT_TRUE(space->legal(point));
    const Result<Candidate> candidate = space->instantiate(point);
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    return expect_candidate(*candidate, 1e-5);
  }
  FAIL() << "no sketch has these decisions";
}

TEST(gpu_contraction, blocks_compute_parts_of_sums) {
  ConvShape shape;
  shape.h = 5, shape.w = 4, shape.ic = 32, shape.oc = 20, shape.residual = true;
  for (const target::Target& target : {small_gpu(), async_gpu()}) {
    for (const int64_t parts : {2, 4}) {
      for (const int64_t depth : {1, 2}) {
        expect_choices(gemm(13, 20, 64), target,
                       {{"slices", 1}, {"parts", parts}, {"depth", depth}, {"chunk", 4}});
        expect_choices(gemm(13, 17, 64), target,
                       {{"slices", 1}, {"parts", parts}, {"depth", depth}, {"chunk", 8}});
        expect_choices(
            conv2d(shape), target,
            {{"slices", 1}, {"parts", parts}, {"depth", depth}, {"chunk", 4}, {"taps", 0}});
      }
    }
  }
}

TEST(gpu_contraction, groups_of_threads_compute_parts_of_sums) {
  ConvShape shape;
  shape.h = 5, shape.w = 4, shape.ic = 32, shape.oc = 20, shape.residual = true;
  for (const target::Target& target : {small_gpu(), async_gpu()}) {
    for (const int64_t slices : {2, 4, 8}) {
      for (const int64_t depth : {1, 2}) {
        expect_choices(gemm(13, 20, 64), target,
                       {{"parts", 1}, {"slices", slices}, {"depth", depth}, {"chunk", 4}});
        expect_choices(gemm(13, 17, 64), target,
                       {{"parts", 1}, {"slices", slices}, {"depth", depth}, {"chunk", 2}});
        expect_choices(
            conv2d(shape), target,
            {{"parts", 1}, {"slices", slices}, {"depth", depth}, {"chunk", 2}, {"taps", 0}});
      }
    }
    expect_choices(gemm(17, 97, 96), target, {{"parts", 1}, {"slices", 8}, {"chunk", 4}});
    expect_choices(gemm(97, 13, 96), target, {{"parts", 1}, {"slices", 4}, {"chunk", 2}});
    expect_choices(gemm(31, 33, 40), target, {{"parts", 1}, {"slices", 4}, {"chunk", 5}});
    expect_choices(product_of_two(2, 13, 31, 32), target,
                   {{"parts", 1}, {"slices", 2}, {"chunk", 4}});
  }
}

// Of few results with long sums, blocks cannot be more than results: their threads share the sums.
TEST(gpu_contraction, the_default_of_few_results_has_groups_of_threads) {
  const target::Target h100 = *target::find("cuda-sm_90a");
  ConvShape shape;
  shape.h = shape.w = 7, shape.ic = 960, shape.oc = 160, shape.kernel = 1, shape.pad = 0;
  const std::string steps = default_steps(conv2d(shape), h100);
  EXPECT_NE(steps.find(", strided)"), std::string::npos) << steps;
  EXPECT_NE(steps.find("scope(conv2d.rf, shared)"), std::string::npos) << steps;
  EXPECT_EQ(default_steps(gemm(4096, 4096, 4096), h100).find("rfactor"), std::string::npos);
}

TEST(gpu_contraction, the_default_has_as_many_blocks_as_the_device_needs) {
  const target::Target h100 = *target::find("cuda-sm_90a");
  const auto parts_of = [&](const compute::Dag& dag) {
    const Result<Space> space = Space::create(dag, h100);
    const Point point = space->default_point();
    const std::vector<Decision>& decisions = space->decisions(point.sketch);
    for (size_t d = 0; d < decisions.size(); ++d) {
      if (decisions[d].role_name() == "parts")
        return decisions[d].options[static_cast<size_t>(point.choices[d])];
    }
    return int64_t{0};
  };
  EXPECT_EQ(parts_of(gemm(4096, 4096, 4096)), 1);
  ConvShape shape;
  shape.h = shape.w = 7, shape.ic = shape.oc = 512;
  EXPECT_GT(parts_of(conv2d(shape)), 1);
  EXPECT_NE(default_steps(gemm(4096, 4096, 4096), h100).find("pipeline(data.cache, "),
            std::string::npos);
}

TEST(gpu_contraction, a_product_has_copies_in_shared_memory_and_sums_in_registers) {
  const std::string steps = default_steps(gemm(256, 256, 256), small_gpu());
  EXPECT_NE(steps.find("scope(matmul.acc, fragment)"), std::string::npos) << steps;
  EXPECT_NE(steps.find("scope(data.cache, shared)"), std::string::npos) << steps;
  EXPECT_NE(steps.find("scope(weight.cache, shared)"), std::string::npos) << steps;
}

// A block copies each element that its tile needs once: so many are read from global memory.
TEST(gpu_contraction, blocks_read_their_operands_once) {
  const int64_t m = 64, n = 64, k = 32;
  const compute::Dag dag = gemm(m, n, k);
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  const Point point = space->default_point();
  const Result<Candidate> candidate = space->instantiate(point);
  ASSERT_TRUE(candidate.ok()) << candidate.status().message();
  const Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
  ASSERT_TRUE(program.ok()) << program.status().message();
  std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
  ir::TouchReport report;
  ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
  const int64_t blocks = program->phases.back().num_tiles();
  const ir::Touch* data = report.find(program->params[0].buffer, false);
  ASSERT_NE(data, nullptr);
  EXPECT_LE(data->count, blocks * m * k);
  EXPECT_LT(data->count, m * n * k / 4) << "each element would be read for each result";
}

TEST(gpu_contraction, blocks_keep_to_the_limits_of_the_device) {
  target::Target target = small_gpu();
  target.gpu().threads_per_block = 64;
  target.gpu().shared_bytes = 2048;
  target.gpu().registers_per_thread = 40;
  expect_points(gemm(97, 64, 33), 5, 1e-5, target);
  const Result<Space> space = Space::create(gemm(97, 64, 33), target);
  ASSERT_TRUE(space.ok()) << space.status().message();
  Rng rng(3);
  for (int i = 0; i < 50; ++i) {
    const Result<Candidate> candidate = space->instantiate(space->sample(rng));
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    for (size_t s = 0; s < candidate->state.stages.size(); ++s) {
      const schedule::StageState& stage = candidate->state.stages[s];
      int64_t threads = 1;
      for (const int leaf : stage.thread_loops())
        threads *= candidate->bounds.stages[s].loops[static_cast<size_t>(leaf)].extent;
      EXPECT_LE(threads, 64);
    }
    EXPECT_LE(shared_bytes(*candidate), 2048) << schedule::to_string(candidate->steps);
  }
}

// Scores and results in tiles, maxima and sums in rows, weights in a phase that computes them once.
TEST(gpu_contraction, attention_may_be_products_and_rows) {
  expect_points(attention(2, 33, 97, 16), 3, 1e-5, small_gpu(), 2);
  const Result<Space> space = Space::create(attention(2, 33, 97, 16), small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  bool found = false;
  for (const Point& point : space->default_points()) {
    const std::string steps = schedule::to_string(space->steps(point));
    size_t tiles = 0, rows = 0;
    for (size_t at = 0; (at = steps.find(", fragment)", at + 1)) != std::string::npos;) ++tiles;
    for (size_t at = 0; (at = steps.find(", strided)", at + 1)) != std::string::npos;) ++rows;
    found |= tiles == 2 && rows >= 2;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace hone::space
