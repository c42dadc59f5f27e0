// cost/gbdt_model.h - boosted trees over the features of a candidate: some trained before on a
// database, more trained on what is measured while it is used, for all tasks together (in the
// spirit of Ansor's section 5.2; trees are evaluated by trees.h, fitted by boosting.h).
#pragma once

#include <map>
#include <memory>

#include "hone/cost/boosting.h"
#include "hone/cost/candidate_features.h"
#include "hone/cost/dataset.h"

namespace hone::cost {

// What a file holds: trees, and the features that they look at.
struct TrainedTrees {
  FeatureSet features = FeatureSet::kCombined;
  Trees trees;
  // For people: schedules, tasks, devices, ... by name; adapt() keeps it. A search reads "loss".
  std::map<std::string, std::string> card = {};
};

// "gbdt" looks at statements, "combined" at the analytic measure too, whose value it corrects.
[[nodiscard]] std::string_view model_name(FeatureSet features);
// `trust`: how much of what was trained before counts, as an exponent of it.
[[nodiscard]] std::unique_ptr<CostModel> make_gbdt_model(TrainedTrees pretrained, double trust = 1);
// A search takes the best of thousands of predictions, where trees err most in its favour (the
// optimizer's curse): of what trees of "combined" that were fitted to values say beyond the
// analytic model half counts there, of those fitted to pairs all. "gbdt" knows nothing but its
// trees.
[[nodiscard]] double trust_in_search(const TrainedTrees& trained);

struct DeviceTrials {
  const Dataset* dataset;
  const target::Target* target;
};
[[nodiscard]] Result<TrainedTrees> train(std::span<const DeviceTrials> devices, FeatureSet features,
                                         const BoostOptions& options = {});
// What was trained before, and a few trees that correct it by what was measured since, as on a new
// device (few-shot transfer, Fasor section 4.2).
[[nodiscard]] Result<TrainedTrees> adapt(TrainedTrees known, std::span<const DeviceTrials> devices,
                                         TreeLibrary library = {});

[[nodiscard]] std::string format(const TrainedTrees& trained);
// `name` is the file's, for messages. Refuses trees over features of another version, or that this
// program computes otherwise (fingerprint.h).
[[nodiscard]] Result<TrainedTrees> parse_trained(std::string_view text, std::string_view name);

}  // namespace hone::cost
