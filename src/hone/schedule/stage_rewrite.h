// schedule/stage_rewrite.h - steps that change the stages themselves, not only their loops.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

[[nodiscard]] StageInfoPtr make_stage_info(compute::Stage stage, bool constant);
[[nodiscard]] StageState make_stage_state(StageInfoPtr info);
[[nodiscard]] bool reads_constants_only(const State& state, const compute::Stage& stage);
// Returns whether no step has changed the stage yet and nothing is computed inside it, so that its
// body may change.
[[nodiscard]] bool untouched(const State& state, int index);
// Makes a stage read the buffer `to` wherever it read `from`.
void redirect_buffer(State& state, int stage, const ir::BufferPtr& from, const ir::BufferPtr& to);
[[nodiscard]] std::string unique_name(const State& state, const std::string& name);
// Inserts a stage before `reader`. The reader becomes `changed`, with the same axes; `producer` is
// computed at the place where its operands are.
void insert_producer(State& state, int reader, compute::Stage producer, compute::Stage changed);
// Replaces one stage by several at root, which are in topological order.
void replace_stage(State& state, int index, std::vector<compute::Stage> stages);

[[nodiscard]] Status inline_stage(const Inline& step, State& state);
[[nodiscard]] Status cache_read(const CacheRead& step, State& state);
[[nodiscard]] Status cache_write(const CacheWrite& step, State& state);
[[nodiscard]] Status narrow(const Narrow& step, State& state);
[[nodiscard]] Status rfactor(const RFactor& step, State& state);

}  // namespace hone::schedule
