// backend/gpu/space_points_testing.h - for tests: tasks of all rules of GPUs, and programs of
// points of a GPU's space.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "hone/compute/window_testing.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"

namespace hone::backend::gpu::testing {

// Calls f with the programs of the points and of some random points.
inline void for_points(const space::Space& space, std::vector<space::Point> points, int samples,
                       uint64_t seed, const std::function<void(const ir::Program&)>& f) {
  Rng rng(seed);
  for (int i = 0; i < samples; ++i) points.push_back(space.sample(rng));
  for (const space::Point& point : points) {
    const auto candidate = space.instantiate(point);
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    SCOPED_TRACE(schedule::to_string(candidate->steps));
    Result<ir::Program> program = schedule::lower_raw(candidate->state, candidate->bounds);
    ASSERT_TRUE(program.ok()) << program.status().message();
    program = ir::run_pipeline(ir::gpu_pipeline(), *std::move(program));
    ASSERT_TRUE(program.ok()) << program.status().message();
    f(*program);
  }
}

// Returns a GPU of few SMs, so that small tasks have blocks of many threads.
inline target::Target small_gpu() {
  target::Gpu gpu;
  gpu.sms = 2;
  return {.name = "small", .part = gpu};
}

// Calls f with the programs of the default points of all sketches and of some random points.
inline void for_points(const compute::Dag& dag, int samples, uint64_t seed,
                       const std::function<void(const ir::Program&)>& f,
                       const target::Target& target = small_gpu(),
                       trial::Accuracy accuracy = trial::Accuracy::kDefault) {
  SCOPED_TRACE(compute::describe(dag));
  const Result<space::Space> space = space::Space::create(dag, target, accuracy);
  ASSERT_TRUE(space.ok()) << space.status().message();
  for_points(*space, space->default_points(), samples, seed, f);
}

// Returns tasks of all rules of GPUs, but for matrix instructions, with extents of about n.
inline std::vector<compute::Dag> tasks_of_every_rule(int64_t n) {
  using namespace compute::testing;
  ConvShape strided;
  strided.h = n + 2, strided.w = 5, strided.ic = 5, strided.oc = 17, strided.stride = 2;
  ConvShape residual;
  residual.h = n + 1, residual.w = 7, residual.ic = 3, residual.oc = 8, residual.residual = true;
  return {gemm(n, 34 - n % 32, 5),
          gemm(33, n, 13),
          conv2d(strided),
          conv2d(residual),
          depthwise(n + 2, n, 8, 1 + n % 2),
          windows({.results = {n, 6}, .channels = 3, .stride = 2, .residual = true}),
          windows({.results = {3, n}, .channels = 8, .dilation = 2, .channels_last = true}),
          windows({.results = {2, n, 3}, .is_max = true, .guarded = true}),
          grouped_conv2d(n, 5, 3, 2, 4, 1),
          softmax(3, n, 1),
          arg_max(5, n, 3),
          running_sum(7, n),
          sum_of_two(n, 12),
          max_pool(n + 2, n + 4, 4),
          global_pool(n, n + 2, 6),
          transpose(n, 5, 8, 1),
          transpose(16, n, 9, 0),
          normalized_rows(3, 4 * n),
          gemm(3, n, 64),
          attention(2, 7, n, 8),
          attention(1, 1, 129 + n, 5)};
}

}  // namespace hone::backend::gpu::testing
