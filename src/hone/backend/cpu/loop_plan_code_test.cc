// Compares what the analysis says of loops on lanes, which it derives from the loops of a State,
// with what the emitter does with the statements of the program: both follow target/loop_plan.h.
#include <gtest/gtest.h>

#include <algorithm>

#include "hone/analysis/loop_body.h"
#include "hone/backend/cpu/compiler.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

namespace hone::backend::cpu {
namespace {

using namespace compute::testing;

struct Lanes {
  bool squares = false, permutes = false;
  int width = 1;  // of the widest vector of a loop
};

Lanes analysed(const space::Candidate& candidate, const target::Target& target) {
  Lanes lanes;
  for (const analysis::Nest& nest : analysis::build_nests(candidate.state, candidate.bounds)) {
    const analysis::Body body = analysis::find_body(nest, target.cpu());
    if (!body.is_vector) continue;
    lanes.squares |= body.is_square();
    lanes.width = std::max(lanes.width, body.plan.width);
    for (const analysis::NestAccess& access : nest.accesses)
      lanes.permutes |= !access.write && analysis::reads_by_parts(nest, access);
  }
  return lanes;
}

Lanes emitted(const space::Candidate& candidate, const target::Target& target) {
  Lanes lanes;
  const Result<ir::Program> program = schedule::lower(candidate.state, candidate.bounds);
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return lanes;
  const Result<ObjectCode> code = compile(*program, target.cpu());
  EXPECT_TRUE(code.ok()) << code.status().message();
  if (!code.ok()) return lanes;
  for (size_t i = 0; i < code->phases.size(); ++i) {
    const EmittedLoops& loops = code->loops[i];
    if (code->phases[i].prepare) continue;
    lanes.squares |= loops.squares > 0;
    lanes.permutes |= loops.permuted_loads > 0;
    lanes.width = std::max(lanes.width, loops.width);
  }
  return lanes;
}

// The points that had each kind of loop.
struct Met {
  int squares = 0, permutes = 0, half_vectors = 0;
};

// Compares some points of a task whose schedules have `steps`.
void compare(const compute::Dag& dag, const std::string& steps, const target::Target& target,
             Met& met) {
  constexpr int kPoints = 8, kDraws = 400;
  const Result<space::Space> space = space::Space::create(dag, target);
  ASSERT_TRUE(space.ok()) << space.status().message();
  Rng rng(7);
  int points = 0;
  for (int draw = 0; draw < kDraws && points < kPoints; ++draw) {
    const space::Point point = draw == 0 ? space->default_point() : space->sample(rng);
    const Result<space::Candidate> candidate = space->instantiate(point);
    ASSERT_TRUE(candidate.ok()) << candidate.status().message();
    const std::string text = schedule::to_string(candidate->steps);
    if (text.find(steps) == std::string::npos) continue;
    ++points;
    const Lanes says = analysed(*candidate, target), does = emitted(*candidate, target);
    SCOPED_TRACE(compute::describe(dag) + " on " + target.name + "\n" + text);
    EXPECT_EQ(says.squares, does.squares);
    EXPECT_EQ(says.width, does.width);
    EXPECT_TRUE(says.permutes || !does.permutes);  // else it gathers
    met.squares += does.squares ? 1 : 0;
    met.permutes += does.permutes ? 1 : 0;
    met.half_vectors += does.width > 1 && 2 * does.width <= target.cpu().lanes(4) ? 1 : 0;
  }
}

TEST(loop_plan, the_analysis_says_what_the_emitter_does) {
  const std::vector<compute::Dag> tasks = {
      gemm(33, 40, 17),
      gemm(7, 3, 64),
      transpose(16, 9, 32, 0),
      transpose(33, 8, 64, 0),
      conv2d({.h = 9, .w = 14, .ic = 5, .oc = 24}),
      grouped_conv2d(9, 9, 8, 3, 2, 1),
      few_columns(40, 5, 33, true),
  };
  const std::string joined = "fuse(grouped_conv2d, [g, oc])";
  for (const char* device : {"x86-64-avx512", "x86-64-avx2", "aarch64-neon"}) {
    const target::Target target = *target::find(device);
    Met met;
    for (const compute::Dag& dag : tasks) compare(dag, "", target, met);
    for (const int64_t channels : {2, 4}) {
      for (const int64_t stride : {1, 2})
        compare(grouped_conv2d(9, 9, 8, channels, channels, stride), joined, target, met);
    }
    EXPECT_GT(met.squares, 0) << device;
    EXPECT_EQ(met.permutes > 0, target::permutes_lanes(target.cpu())) << device;
    EXPECT_GT(met.half_vectors, 0) << device;
  }
}

}  // namespace
}  // namespace hone::backend::cpu
