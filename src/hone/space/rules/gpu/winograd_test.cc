#include <algorithm>

#include "hone/compute/dag_testing.h"
#include "hone/space/rules/gpu/gpu_testing.h"

namespace hone::space {
namespace {

using compute::testing::conv2d;
using compute::testing::ConvShape;

// Runs the points of a space that use Winograd's algorithm, and returns how many sketches do.
int expect_winograd(const ConvShape& shape, int samples) {
  const compute::Dag dag = conv2d(shape);
  SCOPED_TRACE(compute::describe(dag));
  const Result<Space> space = Space::create(dag, small_gpu());
  EXPECT_TRUE(space.ok()) << space.status().message();
  if (!space.ok()) return 0;
  const auto is_winograd = [&](const Point& point) {
    return space->algorithm(point.sketch).starts_with("winograd_");
  };
  std::vector<Point> points = space->default_points();
  std::erase_if(points, [&](const Point& point) { return !is_winograd(point); });
  const auto sketches = static_cast<int>(points.size());
  Rng rng(5);
  for (int tries = 0; samples > 0 && tries < 200; ++tries) {
    const Point point = space->sample(rng);
    if (!is_winograd(point)) continue;
    points.push_back(point);
    --samples;
  }
  EXPECT_EQ(samples, 0) << "few points use the algorithm";
  for (const Point& point : points) {
    const Result<Candidate> candidate = space->instantiate(point);
    EXPECT_TRUE(candidate.ok()) << candidate.status().message();
    if (candidate.ok()) expect_candidate(*candidate, 1e-4);
    if (::testing::Test::HasFatalFailure()) break;
  }
  return sketches;
}

TEST(gpu_winograd, images_and_channels_of_odd_extents) {
  for (const int64_t n : {2, 3, 7, 13, 17}) {
    ConvShape shape = {.h = n + 2, .w = 19 - n, .ic = 5, .oc = n, .residual = n % 2 == 0};
    EXPECT_EQ(expect_winograd(shape, 2), 19 - n >= 4 ? 2 : 1) << n;
  }
  expect_winograd({.h = 9, .w = 14, .ic = 5, .oc = 8, .kernel = 5, .pad = 2, .residual = true}, 2);
  expect_winograd({.h = 17, .w = 13, .ic = 6, .oc = 16, .stride = 2, .residual = true}, 2);
  expect_winograd({.h = 5, .w = 19, .ic = 5, .oc = 9, .kernel = 1, .kernel_w = 3}, 2);
}

// Transforms are in registers, so they add nothing to what is kept between the phases, and weights
// are transformed at compile time.
TEST(gpu_winograd, three_phases_run_with_the_model) {
  const compute::Dag dag = conv2d({.h = 16, .w = 16, .ic = 16, .oc = 32, .pad = 1});
  const Result<Space> space = Space::create(dag, small_gpu());
  ASSERT_TRUE(space.ok()) << space.status().message();
  for (const Point& point : space->default_points()) {
    if (space->algorithm(point.sketch) != "winograd_4") continue;
    const Result<ir::Program> program = schedule::lower(dag, space->steps(point));
    ASSERT_TRUE(program.ok()) << program.status().message();
    int64_t workspace = 0, phases = 0;
    for (const ir::Param& param : program->params)
      workspace += param.role == ir::Role::kWorkspace ? param.buffer->num_elements() : 0;
    EXPECT_EQ(workspace, 36 * 4 * 4 * (16 + 32)) << ir::print(*program);
    for (const ir::Phase& phase : program->phases) phases += phase.prepare ? 0 : 1;
    EXPECT_EQ(phases, 3);
    return;
  }
  FAIL() << "no sketch uses tiles of four results";
}

TEST(gpu_winograd, strict_accuracy_has_none) {
  const compute::Dag dag = conv2d({.h = 16, .w = 16, .ic = 16, .oc = 32, .pad = 1});
  const Result<Space> space = Space::create(dag, small_gpu(), trial::Accuracy::kStrict);
  ASSERT_TRUE(space.ok()) << space.status().message();
  for (const Point& point : space->default_points())
    EXPECT_FALSE(space->algorithm(point.sketch).starts_with("winograd")) << point.sketch;
}

}  // namespace
}  // namespace hone::space
