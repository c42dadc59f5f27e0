// space/rules/gpu/gpu_testing.h - for tests: runs points of a GPU's space in the interpreter.
#pragma once

#include "hone/base/rng.h"
#include "hone/ir/passes/pipeline.h"
#include "hone/ir/printer.h"
#include "hone/schedule/schedule_testing.h"
#include "hone/space/space.h"

namespace hone::space {

// Returns a GPU of few SMs, so that small tasks have blocks of many threads.
inline target::Target small_gpu() {
  target::Gpu gpu;
  gpu.sms = 2;
  return {.name = "small", .part = gpu};
}

// Returns such a GPU with matrix instructions.
inline target::Target matrix_gpu() {
  target::Target target = small_gpu();
  target.gpu().async_copy = true;
  target.gpu().matrix = {{16, 8, 8, DType::kF32, DType::kF32, 512},
                         {16, 8, 16, DType::kBF16, DType::kF32, 1024},
                         {16, 8, 16, DType::kF16, DType::kF32, 1024}};
  return target;
}

// Returns the bytes of all stages of a candidate that lie in shared memory.
inline int64_t shared_bytes(const Candidate& candidate) {
  int64_t bytes = 0;
  for (size_t s = 0; s < candidate.state.stages.size(); ++s) {
    const schedule::StageState& stage = candidate.state.stages[s];
    if (stage.scope != ir::Scope::kShared) continue;
    int64_t elements = dtype_bytes(stage.buffer()->dtype);
    for (const int64_t d : schedule::storage_shape(stage, candidate.bounds.stages[s]))
      elements *= d;
    bytes += elements;
  }
  return bytes;
}

// Expects the program of a candidate to compute what the naive program does, without races.
inline void expect_candidate(const Candidate& candidate, double tolerance) {
  SCOPED_TRACE(schedule::to_string(candidate.steps));
  Result<ir::Program> program = schedule::lower_raw(candidate.state, candidate.bounds);
  ASSERT_TRUE(program.ok()) << program.status().message();
  program = ir::run_pipeline(ir::gpu_pipeline(), *std::move(program));
  ASSERT_TRUE(program.ok()) << program.status().message();
  SCOPED_TRACE(ir::print(*program));
  schedule::expect_close(schedule::naive_outputs(*candidate.dag, 1),
                         schedule::outputs_of(*program, 1), tolerance);
  if (schedule::has_threads(*program)) return;  // then races were looked for
  std::vector<Tensor> args = schedule::integer_arguments(*program, 1);
  const Status ran = ir::run(*program, args, {.check_races = true});
  EXPECT_TRUE(ran.ok()) << ran.message();
}

// Runs the default point of each sketch, and random points of the space. A sketch the steps of
// whose default point cannot be applied would be missing, hence the number of sketches.
inline void expect_points(const compute::Dag& dag, int samples, double tolerance = 1e-5,
                          const target::Target& target = small_gpu(), int sketches = 1,
                          trial::Accuracy accuracy = trial::Accuracy::kDefault) {
  SCOPED_TRACE(compute::describe(dag));
  const Result<Space> space = Space::create(dag, target, accuracy);
  ASSERT_TRUE(space.ok()) << space.status().message();
  EXPECT_GE(space->num_sketches(), sketches);
  std::vector<Point> points = space->default_points();
  Rng rng(7);
  for (int i = 0; i < samples; ++i) points.push_back(space->sample(rng));
  for (const Point& point : points) {
    EXPECT_TRUE(space->legal(point)) << schedule::to_string(space->steps(point));
    const Result<Candidate> candidate = space->instantiate(point);
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    ASSERT_NO_FATAL_FAILURE(expect_candidate(*candidate, tolerance));
  }
}

}  // namespace hone::space
