#include "hone/compute/window_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using namespace compute::testing;

constexpr int64_t kOdd[] = {1, 2, 3, 7, 13, 17, 31, 33, 97};

std::vector<std::string> default_steps(const compute::Dag& dag, const target::Target& target) {
  std::vector<std::string> texts;
  const Result<Space> space = Space::create(dag, target);
  EXPECT_TRUE(space.ok()) << space.status().message();
  for (const Point& point : space->default_points())
    texts.push_back(schedule::to_string(space->steps(point)));
  return texts;
}

// Registers, a box in shared memory, and points that threads compute alone.
constexpr int kSketches = 3;

TEST(gpu_windows, two_dimensions_of_odd_extents) {
  for (const int64_t n : kOdd) {
    for (const bool last : {true, false}) {
      WindowShape shape;
      shape.channels_last = last, shape.residual = n % 2 == 0;
      shape.results = {std::min<int64_t>(n, 13), n > 31 ? 3 : 8}, shape.channels = last ? 12 : n;
      if (n > 31) shape.channels = n, shape.results[0] = 2;
      expect_points(windows(shape), 6, 1e-5, small_gpu(), kSketches);
      shape.results = {5, std::min<int64_t>(n, 33)}, shape.channels = 3, shape.stride = 2;
      expect_points(windows(shape), 4, 1e-5, small_gpu(), kSketches);
    }
  }
}

TEST(gpu_windows, one_and_three_dimensions_dilation_and_large_kernels) {
  for (const bool last : {true, false}) {
    WindowShape shape;
    shape.channels_last = last, shape.channels = last ? 8 : 3;
    for (const int64_t n : {2, 7, 31, 97}) {
      shape.results = {n}, shape.dilation = 1 + n % 3, shape.kernel = 2 + n % 4;
      expect_points(windows(shape), 5, 1e-5, small_gpu(), kSketches);
    }
    shape.kernel = 3;
    for (const int64_t n : {1, 3, 7}) {
      shape.results = {n, 4, 9 - n}, shape.dilation = 1, shape.stride = 1 + n % 2;
      expect_points(windows(shape), 5, 1e-5, small_gpu(), kSketches);
      shape.results = {n + 1, 6}, shape.dilation = 2, shape.batch = 2;
      expect_points(windows(shape), 4, 1e-5, small_gpu(), kSketches);
    }
    shape.results = {6, 9}, shape.kernel = 7, shape.dilation = shape.stride = 1;
    expect_points(windows(shape), 5, 1e-5, small_gpu(), kSketches);
  }
}

TEST(gpu_windows, pools_and_windows_that_are_tested) {
  for (const int64_t n : {2, 3, 7, 13}) {
    WindowShape shape;
    shape.results = {n, 15 - n}, shape.channels = 8, shape.channels_last = n % 2 == 0;
    shape.is_max = true;
    expect_points(windows(shape), 4, 0, small_gpu(), kSketches);
    shape.guarded = true;
    expect_points(windows(shape), 4, 0, small_gpu(), 2);
    shape.is_max = false;
    expect_points(windows(shape), 4, 1e-5, small_gpu(), 2);
  }
}

// A thread would need a register for each of these taps and of what they multiply, so another rule
// computes them.
TEST(gpu_windows, windows_longer_than_all_registers) {
  WindowShape shape;
  shape.results = {150}, shape.kernel = 230;
  for (const bool is_max : {false, true}) {
    shape.is_max = is_max;
    expect_points(windows(shape), 3, 1e-5);
  }
}

// The default has several results in each thread, and no copies of windows.
TEST(gpu_windows, a_thread_computes_neighbours_from_registers) {
  WindowShape shape;
  shape.results = {112, 112}, shape.batch = 8, shape.channels = 32, shape.channels_last = true;
  const std::vector<std::string> steps =
      default_steps(windows(shape), *target::find("cuda-sm_90a"));
  ASSERT_GE(steps.size(), 3);
  EXPECT_EQ(steps[0].find("im2col"), std::string::npos) << steps[0];
  EXPECT_EQ(steps[0].find("shared"), std::string::npos) << steps[0];
  EXPECT_NE(steps[0].find("split(relu, o0, ["), std::string::npos) << steps[0];
  EXPECT_NE(steps[0].find("unroll(depthwise, k0)"), std::string::npos) << steps[0];
  const auto in_box = [](const std::string& text) {
    return text.find("scope(data.cache, shared)") != std::string::npos;
  };
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), in_box));
}

// A block copies what its windows cover to shared memory once, and weights that all threads of a
// channel share stay where they are.
TEST(gpu_windows, a_box_is_read_once) {
  WindowShape shape;
  shape.results = {16, 16}, shape.channels = 8;
  const compute::Dag dag = windows(shape);
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  bool found = false;
  for (const Point& point : space->default_points()) {
    const Result<Candidate> candidate = space->instantiate(point);
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    if (shared_bytes(*candidate) == 0) continue;
    found = true;
    const Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
    ASSERT_TRUE(program.ok()) << program.status().message();
    std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
    ir::TouchReport report;
    ASSERT_TRUE(ir::run(*program, args, {}, &report).ok());
    const ir::Touch* data = report.find(program->params[0].buffer, false);
    ASSERT_NE(data, nullptr);
    EXPECT_LE(data->count, program->phases.back().num_tiles() * shared_bytes(*candidate) / 4);
    EXPECT_LT(data->count, int64_t{16} * 16 * 8 * 9 / 2) << "each tap would be read by each result";
  }
  EXPECT_TRUE(found);
}

// Several channels of which each result needs all are a convolution, and windows that do not slide
// are rows.
TEST(gpu_windows, convolutions_and_rows_are_none) {
  const auto has_windows = [](const compute::Dag& dag) {
    const std::vector<std::string> steps = default_steps(dag, small_gpu());
    return std::any_of(steps.begin(), steps.end(), [](const std::string& text) {
      return text.find("scope(data.cache, shared)") != std::string::npos &&
             text.find("register)") != std::string::npos &&
             text.find("fragment)") == std::string::npos;
    });
  };
  EXPECT_TRUE(has_windows(windows({})));
  EXPECT_FALSE(has_windows(conv2d({.ic = 1})));
  EXPECT_FALSE(has_windows(grouped_conv2d(7, 5, 3, 2, 4, 1)));
  EXPECT_FALSE(has_windows(gemm(13, 17, 9)));
}

}  // namespace
}  // namespace hone::space
