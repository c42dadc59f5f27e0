// backend/gpu/space_points_testing.h - for tests: programs of points of a GPU's space.
#pragma once

#include <gtest/gtest.h>

#include <functional>

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

}  // namespace hone::backend::gpu::testing
