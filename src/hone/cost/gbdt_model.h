// cost/gbdt_model.h - boosted trees over the features of a candidate. Some were trained on a
// database beforehand, more are trained for all tasks together on what is measured while the model
// is used (in the spirit of Ansor's section 5.2). Trees are evaluated by trees.h and fitted by
// boosting.h.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "hone/cost/boosting.h"
#include "hone/cost/candidate_features.h"

namespace hone::cost {

// The contents of a model file: trees and the set of features that they use.
struct TrainedTrees {
  FeatureSet features = FeatureSet::kCombined;
  Trees trees;
  // Facts for people by name: schedules, tasks, devices, ... A search reads kLossNote.
  std::map<std::string, std::string> card = {};
};
// The note of a card about what the trees were fitted to, and its value for pairs.
inline constexpr const char* kLossNote = "loss";
inline constexpr const char* kPairsLoss = "pairs";

// Returns "gbdt" for trees over statements, "combined" for trees that also use the analytic
// measure, whose value they correct, or "gpu" for trees that do the same for GPUs.
[[nodiscard]] std::string_view model_name(FeatureSet features);
// Makes a model. `trust` is the weight of the trees that were trained beforehand, as an exponent of
// their factor.
[[nodiscard]] std::unique_ptr<CostModel> make_gbdt_model(TrainedTrees pretrained, double trust = 1);
[[nodiscard]] std::unique_ptr<CostModel> make_gbdt_model(
    std::shared_ptr<const TrainedTrees> pretrained, double trust);
// Returns the trust for a search, which takes the best of thousands of predictions, where trees err
// most in its favour (the optimizer's curse). For trees of "combined" and "gpu" that were fitted to
// values, half of their correction of the analytic model counts; for those fitted to pairs, all of
// it. "gbdt" has nothing but its trees.
[[nodiscard]] double trust_in_search(const TrainedTrees& trained);

[[nodiscard]] std::string format(const TrainedTrees& trained);
// Parses a model. `name` is the file's, for messages. Trees over features of another version, or
// that this program computes differently (fingerprint.h), are refused.
[[nodiscard]] Result<TrainedTrees> parse_trained(std::string_view text, std::string_view name);
// Parses a model of this very program, whose fingerprint a test has compared with what it computes.
[[nodiscard]] Result<TrainedTrees> parse_shipped(std::string_view text, std::string_view name);

}  // namespace hone::cost
