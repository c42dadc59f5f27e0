// A seed: every pass of the lowering keeps a random program, or one like those that it looks for,
// valid and what it computes; those for GPUs keep a random program of a GPU so, and leave no races.
// A program that leaves out what a run of smaller sizes does not need computes all else. Each pass
// changes the programs of a hundredth of all seeds or more.
#include <map>

#include "hone/ir/passes/check_pass_testing.h"
#include "hone/ir/passes/limit_loops_testing.h"
#include "hone/ir/passes/random_pattern.h"
#include "hone/ir/random_gpu_program.h"

#include "fuzz.h"

namespace hone::fuzz {
namespace {

std::map<std::string_view, uint64_t>& changes() {
  static std::map<std::string_view, uint64_t> of_pass;
  return of_pass;
}

void check(const ir::Program& before, const ir::Program& after, std::string_view pass,
           uint64_t seed, bool check_races = true) {
  const std::string difference = ir::testing::difference(before, after, seed, check_races);
  if (!difference.empty())
    fmt::print(stderr, "{}: {}\n{}{}", pass, difference, ir::print(before), ir::print(after));
  HONE_ASSERT(difference.empty(), "a pass changed what a program computes");
}

void check_limits(const ir::Program& program, uint64_t seed) {
  Rng rng(seed);
  const ir::testing::LimitCase limits = ir::testing::random_limits(program, rng);
  const ir::testing::LimitRun run =
      ir::testing::run_limited(program, limits, seed, ir::testing::kAllLoops);
  if (!run.difference.empty())
    fmt::print(stderr, "limit_loops: {}: {}\n{}{}", ir::testing::describe(limits), run.difference,
               ir::print(program), ir::print(run.limited.program));
  HONE_ASSERT(run.difference.empty(), "an element that is needed was not computed");
  changes()["limit_loops"] += run.changed ? 1 : 0;
}

}  // namespace

std::string make_input(Rng& rng) {
  const uint64_t seed = rng.next();
  return {reinterpret_cast<const char*>(&seed), sizeof(seed)};
}

std::string verdict(uint64_t runs) {
  std::string wrong;
  for (const auto& [pass, times] : changes()) {
    if (times < runs / 100) wrong += fmt::format("{} changed only {} programs\n", pass, times);
  }
  return wrong;
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const uint64_t seed = fuzz::seed_of(data, size);
  const ir::Program before = ir::random_case(seed);
  for (const ir::Pass& pass : ir::testing::distinct(ir::cpu_pipeline())) {
    const ir::Program after = pass.run(before, ir::testing::kEager);
    fuzz::check(before, after, pass.name, seed);
    fuzz::changes()[pass.name] += ir::print(before) != ir::print(after) ? 1 : 0;
  }
  // All of them in order, verified after each.
  const auto all = [seed](std::span<const ir::Pass> passes, const ir::Program& program) {
    const Result<ir::Program> made =
        ir::run_pipeline(passes, program, {.parameters = ir::testing::kEager});
    HONE_ASSERT(made.ok(), made.status().message().c_str());
    fuzz::check(program, *made, "the pipeline", seed);
  };
  all(ir::cpu_pipeline(), before);
  fuzz::check_limits(before, seed);
  const ir::Program of_gpu = ir::random_gpu_program(seed);
  for (const ir::Pass& pass : ir::testing::distinct(ir::gpu_pipeline())) {
    const ir::Program after = pass.run(of_gpu, ir::testing::kEager);
    fuzz::check(of_gpu, after, pass.name, seed, pass.check != nullptr);
    fuzz::changes()[pass.name] += ir::print(of_gpu) != ir::print(after) ? 1 : 0;
  }
  all(ir::gpu_pipeline(), of_gpu);
  return 0;
}
