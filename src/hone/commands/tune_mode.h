// tune_mode.h - sets what SearchOptions::mode says, and tunes without measuring (internal).
#pragma once

#include "hone/commands/checked_compile.h"
#include "hone/search/policy.h"
#include "hone/tune.h"

namespace hone {

enum class TuneMode : uint8_t { kUsual, kEfficient, kQuality };

// Returns an error for a mode that does not exist, and for options that contradict it.
[[nodiscard]] Result<TuneMode> tune_mode(const SearchOptions& options);
// Returns the strategy of the options, as search::make_policy() takes it. With kQuality, dqn has
// the weights of Fasor's high-quality mode where the options name none.
[[nodiscard]] std::string strategy_of(const SearchOptions& options, TuneMode mode);

// Returns the spaces of a model's tasks, and of those that may take their place.
[[nodiscard]] std::vector<const space::Space*> spaces_of(const ModelTasks& model);

// Makes one step of the strategy for each kernel without a record: the best predicted of
// kEfficientStep schedules that it proposes takes the place of what was chosen if it seems faster
// by search::BestPredictedOptions::margin. Updates the summaries.
[[nodiscard]] Status take_best_of_a_step(Untuned& untuned, search::Policy& policy,
                                         const CompileOptions& options);

// Tunes without measuring (Fasor, section 6.2.1, "high-efficiency mode").
[[nodiscard]] Result<TuneSummary> tune_without_measuring(Session& session,
                                                         const graph::Graph& imported,
                                                         const std::string& output,
                                                         const TuneOptions& options, double start,
                                                         search::Policy& policy);

}  // namespace hone
