// schedule/storage_order.h - the steps that say in which order, and how much of it, a stage's
// result is stored.
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// A stage that is stored one loop outside of where it is computed keeps so many slices.
[[nodiscard]] Status apply_fold(const Fold& step, State& state);
// Orders the dimensions of a stage's buffer.
[[nodiscard]] Status apply_layout(const Layout& step, State& state);

}  // namespace hone::schedule
