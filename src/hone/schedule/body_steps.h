// schedule/body_steps.h - the steps that give a stage with a body of statements another body.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

[[nodiscard]] Status lift(const Lift& step, State& state);
[[nodiscard]] Status divide_updates(const SplitUpdates& step, State& state);
[[nodiscard]] Status share_body(const BlockBody& step, State& state);

}  // namespace hone::schedule
