// tuned_schedules.h - chooses the schedules of a model whose tasks were tuned: by the times of the
// kernels alone, then by their times inside the model (internal).
#pragma once

#include <map>
#include <vector>

#include "hone/commands/in_model.h"
#include "hone/session/compile_graph.h"
#include "hone/tune.h"

namespace hone {

using TunedByKey = std::map<uint64_t, const search::TunedTask*>;

// Returns the schedules of `model`, which is the partition that the measured times decide for: the
// tuned ones, or what was known of a task before if there was too little time for it. Updates the
// summaries.
[[nodiscard]] Result<std::vector<schedule::Steps>> tuned_schedules(ModelTasks& model,
                                                                   const Untuned& before,
                                                                   const TunedByKey& tuned,
                                                                   const CompileOptions& options);

// Compares the best few schedules of the tasks, with at most `most` challengers, inside the model
// and uses those that are the fastest there.
[[nodiscard]] Status choose_in_model(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                     const TunedByKey& tuned, int most,
                                     const InModelOptions& options, InModelSummary& summary);

}  // namespace hone
