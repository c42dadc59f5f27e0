// search/sensitivity.h - how much the roles of a task's decisions matter (Fasor, section 5: each
// time only one is moved): what is gained where one role alone moves away from the default point,
// and what is lost where the best point known has this role as the default has it. Whoever asks
// says how schedules are timed: by measuring, by what is stored, by a cost model.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "hone/space/space.h"
#include "hone/trial/sensitivity.h"

namespace hone::search {

// Returns the seconds of points: infinity for one that fails, NaN for one that is not timed.
using Evaluate = std::function<Result<std::vector<double>>(std::span<const space::Point>)>;

struct EffectOptions {
  size_t options = 8;  // most options of each decision, which are evenly spread
};

// Finds the effects of the roles of the sketch whose default point is fastest, and of the one of
// `best`. A role of which nothing was timed is missing. It is an error if no default point runs.
[[nodiscard]] Result<trial::RoleEffects> role_effects(const space::Space& space,
                                                      const std::optional<space::Point>& best,
                                                      const Evaluate& evaluate,
                                                      const EffectOptions& options = {});

}  // namespace hone::search
