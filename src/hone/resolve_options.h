// resolve_options.h - the cost model that the options name (internal to the facade).
#pragma once

#include "hone/model/model_tasks.h"

namespace hone {

// An error if a name among the options stands for nothing.
[[nodiscard]] Result<CostModelPtr> resolve_options(const CompileOptions& options);

}  // namespace hone
