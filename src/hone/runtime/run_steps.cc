#include "hone/runtime/run_steps.h"

#include <string.h>

#include "hone/runtime/hone_model.h"
#include "hone/runtime/loops.h"

namespace hone::runtime {
namespace {

// Runs phases; with loops, times of their turns are added up.
int run_phases(Model& model, const PhaseCall* phases, int64_t first, int64_t end) {
  int64_t* const ns = !model.profile             ? nullptr
                      : model.turn_ns == nullptr ? model.step_ns + first
                                                 : model.turn_ns + first;
  // The last turn of a loop is traced.
  const bool traces = model.trace && ns != nullptr && model.chosen == nullptr;
  ThreadSpan* const spans = traces ? model.spans + first * pool_num_threads(model.pool) : nullptr;
  if (model.plan->num_loops > 0) pool_expect_other_work(model.pool);  // parts are runs of the pool
  const int result = pool_run(model.pool, phases + first, end - first, model.scratch,
                              model.scratch_stride, ns, spans);
  if (ns != nullptr && model.turn_ns != nullptr)
    for (int64_t i = first; i < end; ++i) model.step_ns[i] += model.turn_ns[i];
  if (result == 0) return 0;
  say(model.error, "a kernel failed with code %d", result);
  return 1;
}

// Runs all steps of the plan.
int run_plan(Model& model) {
  const PlanHeader& plan = *model.plan;
  // Times and loops have the numbers of the plan's steps.
  if (model.needed != nullptr && !model.profile && plan.num_loops == 0)
    return run_phases(model, model.needed, 0, model.num_needed);
  const auto run = [&](uint32_t first, uint32_t end) {
    return run_phases(model, model.phases, first, end);
  };
  const auto fail = [&](const PlanLoop& loop) {
    write_fault(model.error, kErrorBytes, plan_string(plan, loop.beyond), loop, model.arena);
    return HONE_INPUTS_ARE_REFUSED;
  };
  const LoopRunner<decltype(run), decltype(fail)> loops(plan_table<PlanLoop>(plan, plan.loops),
                                                        plan_table<PlanCopy>(plan, plan.copies),
                                                        model.arena, run, fail);
  return loops.run(0, plan.num_steps, 0, plan.num_loops);
}

}  // namespace

int run_steps(Model& model) {
  const uint64_t steps = model.plan->num_steps;
  if (model.trace) {  // steps that the run leaves out have no times
    memset(model.spans, 0,
           steps * static_cast<uint64_t>(pool_num_threads(model.pool)) * sizeof(ThreadSpan));
    model.start_ns = clock_ns();
  }
  // Times of turns are added up.
  if (model.profile && model.turn_ns != nullptr) memset(model.step_ns, 0, steps * sizeof(int64_t));
  return model.chosen == nullptr ? run_plan(model)
                                 : run_phases(model, model.chosen, 0, model.num_chosen);
}

}  // namespace hone::runtime
