#include "hone/ir/passes/pipeline.h"

#include <algorithm>

#include "hone/base/clock.h"
#include "hone/ir/gpu/check_barriers.h"
#include "hone/ir/passes/fuse_loops.h"
#include "hone/ir/passes/gpu/insert_barriers.h"
#include "hone/ir/passes/hoist_functions.h"
#include "hone/ir/passes/hoist_guards.h"
#include "hone/ir/passes/hoist_places.h"
#include "hone/ir/passes/jam_loops.h"
#include "hone/ir/passes/share_sums.h"
#include "hone/ir/passes/share_windows.h"
#include "hone/ir/passes/skip_neutral.h"
#include "hone/ir/simplify.h"
#include "hone/ir/verifier.h"

namespace hone::ir {
namespace {

// A pass that asks nothing about the machine.
template <auto kPass>
Program plain(Program program, const PassParameters&) {
  return kPass(std::move(program));
}
constexpr auto kSimplify = [](Program p) { return simplify(std::move(p)); };
constexpr auto kHoistGuards = [](Program p) { return hoist_guards(std::move(p)); };

// One with options.
template <auto kPass, auto kOptions>
Program with_options(Program program, const PassParameters& parameters) {
  return kPass(std::move(program), parameters.*kOptions);
}

constexpr Pass kCpuPasses[] = {
    {"simplify", "first: all other passes compare indices and conditions in their short form",
     plain<kSimplify>},
    {"hoist_guards", "before fuse_loops: a loop with a guard in it is joined with no other",
     plain<kHoistGuards>},
    {"hoist_places",
     "before fuse_loops and prefetching: a row in vectors is not joined and has no hints",
     plain<hoist_places>},
    {"prefetch_rows", "after hoist_places, which says where rows begin",
     with_options<prefetch_rows, &PassParameters::prefetch_rows>},
    {"fuse_loops", "before prefetching: a loop with hints in it is joined with no other",
     plain<fuse_loops>},
    {"prefetch_blocks", "before partition_loops: the loops of a tile have to count from 0",
     with_options<prefetch_blocks, &PassParameters::prefetch_blocks>},
    {"prefetch_next", "before partition_loops, too: the loops of a nest have to count from 0",
     with_options<prefetch_next, &PassParameters::prefetch_next>},
    {"partition_loops", "before the passes that leave loops with guards as they are",
     with_options<partition_loops, &PassParameters::partition_loops>},
    {"fuse_loops", "again: rows whose guards are gone can be joined now", plain<fuse_loops>},
    {"jam_loops", "after partition_loops: incomplete tiles have loops of their own now",
     plain<jam_loops>},
    {"share_sums", "after partition_loops: a guard keeps rows apart", plain<share_sums>},
    {"share_windows", "after partition_loops: a guard keeps the taps of a window apart",
     plain<share_windows>},
    {"hoist_functions", "after the passes that join loops over vectors", plain<hoist_functions>},
    {"roll_loops", "after the passes that make straight code longer or shorter",
     with_options<roll_loops, &PassParameters::roll_loops>},
    {"skip_neutral", "after share_windows: the guards that it makes would keep taps apart",
     plain<skip_neutral>},
    {"simplify", "last: what the passes made reaches machine code in its short form",
     plain<kSimplify>},
};

constexpr Pass kGpuPasses[] = {
    {"simplify", "first: all other passes compare indices and conditions in their short form",
     plain<kSimplify>},
    {"partition_loops", "before insert_barriers: it makes loops of the block of one loop",
     with_options<partition_loops, &PassParameters::partition_loops>},
    {"insert_barriers", "last: other passes know nothing of the order that barriers keep",
     plain<insert_barriers>, check_barriers},
};

bool equal(const Program& a, const Program& b) {
  const auto same_param = [](const Param& x, const Param& y) {
    return x.buffer == y.buffer && x.role == y.role;
  };
  const auto same_phase = [](const Phase& x, const Phase& y) {
    return x.prepare == y.prepare && (x.body && y.body ? equal(x.body, y.body) : x.body == y.body);
  };
  return std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(),
                    same_param) &&
         std::equal(a.phases.begin(), a.phases.end(), b.phases.begin(), b.phases.end(), same_phase);
}

}  // namespace

std::span<const Pass> cpu_pipeline() { return kCpuPasses; }
std::span<const Pass> gpu_pipeline() { return kGpuPasses; }

Result<Program> run_pass(const Pass& pass, Program program, const PipelineOptions& options) {
  if (std::count(options.skip.begin(), options.skip.end(), pass.name) > 0) return program;
  if (!options.trace) {
    program = pass.run(std::move(program), options.parameters);
  } else {
    const Program before = program;
    const double start = thread_seconds();
    program = pass.run(std::move(program), options.parameters);
    const double seconds = thread_seconds() - start;
    options.trace({pass, seconds, before, program, !equal(before, program)});
  }
  if (!options.verify) return program;
  Status status = verify(program);
  if (status.ok() && pass.check != nullptr) status = pass.check(program);
  if (!status.ok())
    return error(Code::kInternal, "after the pass {}: {}", pass.name, status.message());
  return program;
}

Result<Program> run_pipeline(std::span<const Pass> passes, Program program,
                             const PipelineOptions& options) {
  for (const Pass& pass : passes) {
    HONE_ASSIGN_OR_RETURN(program, run_pass(pass, std::move(program), options));
  }
  return program;
}

}  // namespace hone::ir
