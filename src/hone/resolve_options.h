// resolve_options.h - the cost models that the options name (internal to the facade).
#pragma once

#include "hone/model/model_tasks.h"
#include "hone/tune.h"

namespace hone {

// An error if a name among the options stands for nothing.
[[nodiscard]] Result<CostModelPtr> resolve_options(const CompileOptions& options);
// What guides the search: `cost`, to which options.compile was resolved, where that is the same.
[[nodiscard]] Result<CostModelPtr> resolve_guide(const TuneOptions& options,
                                                 const CostModelPtr& cost);

}  // namespace hone
