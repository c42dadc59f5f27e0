// tuned_schedules.h - which schedules a model gets once its tasks were tuned: by the times of the
// kernels alone, then by those inside the model (internal to the facade).
#pragma once

#include <map>
#include <vector>

#include "hone/commands/in_model.h"
#include "hone/commands/tune_options.h"
#include "hone/session/compile_graph.h"

namespace hone {

using TunedByKey = std::map<uint64_t, const search::TunedTask*>;

// The schedules of `model`, the partition that the measured times speak for: the tuned ones, and
// where the time was too short for a task, what was known of it before. Fills in the summaries.
[[nodiscard]] Result<std::vector<schedule::Steps>> tuned_schedules(ModelTasks& model,
                                                                   const Untuned& before,
                                                                   const TunedByKey& tuned,
                                                                   const CompileOptions& options);

// Compares the best few schedules of the tasks, at most `most` challengers, inside the model and
// takes the fastest there.
[[nodiscard]] Status choose_in_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                     const TunedByKey& tuned, int most,
                                     const InModelOptions& options, InModelSummary& summary);

}  // namespace hone
