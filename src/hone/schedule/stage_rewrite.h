// schedule/stage_rewrite.h - steps that change the stages themselves, not just their loops.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

[[nodiscard]] StageInfoPtr make_stage_info(compute::Stage stage, bool constant);
[[nodiscard]] StageState make_stage_state(StageInfoPtr info);
[[nodiscard]] bool reads_constants_only(const State& state, const compute::Stage& stage);

[[nodiscard]] Status inline_stage(const Inline& step, State& state);
[[nodiscard]] Status cache_read(const CacheRead& step, State& state);
[[nodiscard]] Status cache_write(const CacheWrite& step, State& state);
[[nodiscard]] Status rfactor(const RFactor& step, State& state);

}  // namespace hone::schedule
