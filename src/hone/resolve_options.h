// resolve_options.h - the cost models that the options name (internal to the facade).
#pragma once

#include "hone/model/model_tasks.h"
#include "hone/tune_options.h"

namespace hone {

// An error if a name among the options stands for nothing.
[[nodiscard]] Result<CostModelPtr> resolve_options(const CompileOptions& options);
struct TuneModels {
  CostModelPtr cost, guide;  // one model, loaded once, where both names stand for the same
};
[[nodiscard]] Result<TuneModels> resolve_options(const TuneOptions& options);

}  // namespace hone
