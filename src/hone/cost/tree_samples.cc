#include "hone/cost/tree_samples.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hone::cost {
namespace {

constexpr double kFast = 1.0;      // weight of a trial: (best time of its task / its time)^kFast
constexpr double kSlowest = 0.05;  // the least weight

}  // namespace

TreeSample make_tree_sample(const Query& query, double seconds, FeatureSet set) {
  CandidateFeatures features = candidate_features(query, set);
  return {std::move(features.row), std::log(seconds / features.base_seconds), seconds, query.task};
}

TrainingRows training_rows(std::span<const TreeSample> samples, const Trees& known, double trust) {
  std::map<uint64_t, std::pair<int, double>> tasks;  // number and best time
  for (const TreeSample& sample : samples) {
    auto& [number, best] = tasks.try_emplace(sample.task, 0, INFINITY).first->second;
    best = std::min(best, sample.seconds);
  }
  int next = 0;
  for (auto& [task, entry] : tasks) entry.first = next++;
  TrainingRows rows;
  rows.width = samples.empty() ? 0 : static_cast<int>(samples[0].features.size());
  for (const TreeSample& sample : samples)
    rows.features.insert(rows.features.end(), sample.features.begin(), sample.features.end());
  std::vector<double> log_factors(samples.size());
  known.predict(rows.features, log_factors);
  for (size_t i = 0; i < samples.size(); ++i) {
    const TreeSample& sample = samples[i];
    const auto& [number, best] = tasks.at(sample.task);
    rows.target.push_back(static_cast<float>(sample.log_factor - trust * log_factors[i]));
    rows.known.push_back(static_cast<float>(std::log(sample.seconds)) - rows.target.back());
    rows.weight.push_back(
        static_cast<float>(std::max(std::pow(best / sample.seconds, kFast), kSlowest)));
    rows.group.push_back(number);
  }
  return rows;
}

}  // namespace hone::cost
