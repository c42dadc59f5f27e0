#include "hone/schedule/body_steps.h"

#include <bit>

#include "hone/ir/gpu/thread_nest.h"
#include "hone/schedule/block_scan.h"
#include "hone/schedule/block_selection.h"
#include "hone/schedule/lift_loops.h"
#include "hone/schedule/split_updates.h"
#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {
namespace {

using compute::Stage;

// `make` returns the stages that take the place of one that no step has changed yet.
template <typename F>
Status replace_body(State& state, const std::string& name, const F& make) {
  const int index = state.find_stage(name);
  if (index < 0) return invalid("no stage {}", name);
  if (!untouched(state, index)) return invalid("{} is scheduled already", name);
  Result<std::vector<Stage>> made = make(state.stages[static_cast<size_t>(index)].info->stage);
  HONE_RETURN_IF_ERROR(made.status());
  replace_stage(state, index, *std::move(made));
  return ok_status();
}

}  // namespace

Status lift(const Lift& step, State& state) {
  return replace_body(state, step.stage, [&](const Stage& stage) -> Result<std::vector<Stage>> {
    HONE_ASSIGN_OR_RETURN(Stage lifted, lift_loops(stage, step));
    return std::vector{std::move(lifted)};
  });
}

Status divide_updates(const SplitUpdates& step, State& state) {
  const std::string copy = unique_name(state, step.stage + ".copy");
  return replace_body(state, step.stage, [&](const Stage& stage) -> Result<std::vector<Stage>> {
    HONE_ASSIGN_OR_RETURN(DividedUpdates divided, split_updates(stage, copy));
    return std::vector{std::move(divided.copy), std::move(divided.updates)};
  });
}

Status share_body(const BlockBody& step, State& state) {
  return replace_body(state, step.stage, [&](const Stage& stage) -> Result<std::vector<Stage>> {
    const bool is_power = std::has_single_bit(static_cast<uint64_t>(step.threads));
    if (step.threads < ir::kWarpThreads || step.threads > ir::kMaxBlockThreads || !is_power)
      return invalid("{} threads, expected a power of 2 from {} to {}", step.threads,
                     ir::kWarpThreads, ir::kMaxBlockThreads);
    std::optional<Stage> shared = block_selection(stage, step.threads);
    if (!shared) shared = block_scan(stage, step.threads);
    if (!shared) return invalid("{} has no body that a block can share", step.stage);
    return std::vector{*std::move(shared)};
  });
}

}  // namespace hone::schedule
