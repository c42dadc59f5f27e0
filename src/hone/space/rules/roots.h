// space/rules/roots.h - the stages of a task that others are computed inside of (internal to
// space).
#pragma once

#include "hone/space/rules/rule.h"

namespace hone::space {

// Simplifies Task::stages, and names Task::reduction and Task::epilogue if it is one reduction with
// its epilogue. If it `keeps_functions`, values that are expensive and read by several stages are
// computed once, in a stage of their own.
[[nodiscard]] Status simplify(Task& task, bool keeps_functions = false);

// A stage that other stages are computed inside of, and the reduction that is; "" if there is none.
struct Root {
  std::string stage, reduction;
};
// Returns each stage by itself, a reduction together with the pointwise stage that follows it.
[[nodiscard]] std::vector<Root> roots_of(const schedule::State& state);

// Returns for each axis of E, the pointwise epilogue of a reduction R, the name of the spatial axis
// of R that it corresponds to; nullopt unless they correspond one to one.
[[nodiscard]] std::optional<std::vector<std::string>> match_axes(const schedule::StageInfo& e,
                                                                 const schedule::StageInfo& r);

}  // namespace hone::space
