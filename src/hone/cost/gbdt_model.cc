#include "hone/cost/gbdt_model.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hone::cost {
namespace {

constexpr size_t kRefit = 64;      // new measurements between two fits, or ...
constexpr size_t kRefitShare = 8;  // ... this part of all
constexpr size_t kMinimum = 32;    // measurements before the first
constexpr size_t kMaximum = 4000;  // the newest that a fit looks at
constexpr double kFast = 1.0;      // weight of a trial: (best time of its task / its time)^kFast
constexpr double kSlowest = 0.05;  // the least weight
// The key in a card of the loss to which trees were fitted.
constexpr const char* kLoss = "loss";
constexpr const char* kPairs = "pairs";

// Tuning measures few candidates, so these are few trees with small changes.
constexpr BoostOptions kOnline = {.rounds = 30,
                                  .depth = 5,
                                  .leaves = 0,
                                  .learning_rate = 0.12,
                                  .feature_share = 1,
                                  .pairs = 0,
                                  .min_leaf_weight = 4,
                                  .centring = 0.9};

struct Sample {
  std::vector<float> features;
  double log_factor;  // log(measured / base)
  double seconds;
  uint64_t task;
};

// `known`: what trees say already, `trust`: how much of it counts.
TrainingRows make_rows(std::span<const Sample> samples, const Trees& known = {}, double trust = 1) {
  std::map<uint64_t, std::pair<int, double>> tasks;  // number and best time
  for (const Sample& sample : samples) {
    auto& [number, best] = tasks.try_emplace(sample.task, 0, INFINITY).first->second;
    best = std::min(best, sample.seconds);
  }
  int next = 0;
  for (auto& [task, entry] : tasks) entry.first = next++;
  TrainingRows rows;
  rows.width = samples.empty() ? 0 : static_cast<int>(samples[0].features.size());
  for (const Sample& sample : samples)
    rows.features.insert(rows.features.end(), sample.features.begin(), sample.features.end());
  std::vector<double> log_factors(samples.size());
  known.predict(rows.features, log_factors);
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    const auto& [number, best] = tasks.at(sample.task);
    rows.target.push_back(static_cast<float>(sample.log_factor - trust * log_factors[i]));
    rows.known.push_back(static_cast<float>(std::log(sample.seconds)) - rows.target.back());
    rows.weight.push_back(
        static_cast<float>(std::max(std::pow(best / sample.seconds, kFast), kSlowest)));
    rows.group.push_back(number);
  }
  return rows;
}

Sample make_sample(const Query& query, double seconds, FeatureSet set) {
  CandidateFeatures features = candidate_features(query, set);
  return {std::move(features.row), std::log(seconds / features.base_seconds), seconds, query.task};
}

class GbdtModel : public CostModel {
 public:
  GbdtModel(TrainedTrees pretrained, double trust)
      : pretrained_(std::move(pretrained)), trust_(trust) {}

  [[nodiscard]] std::string_view name() const override { return model_name(pretrained_.features); }

  [[nodiscard]] Result<std::vector<double>> predict(std::span<const Query> queries) const override {
    std::vector<double> seconds, known(queries.size()), learnt(queries.size());
    std::vector<float> rows;
    for (const Query& query : queries) {
      const CandidateFeatures features = candidate_features(query, pretrained_.features);
      rows.insert(rows.end(), features.row.begin(), features.row.end());
      seconds.push_back(features.base_seconds);
    }
    pretrained_.trees.predict(rows, known);
    online_.predict(rows, learnt);
    for (size_t i = 0; i < seconds.size(); ++i)
      seconds[i] *= std::exp(trust_ * known[i] + learnt[i]);
    return seconds;
  }

  [[nodiscard]] Status update(std::span<const Observation> observations) override {
    if (!learns()) return ok_status();  // what was trained before has to do
    for (const Observation& observation : observations) {
      if (!std::isfinite(observation.seconds) || observation.seconds <= 0) continue;
      samples_.push_back(make_sample(observation.query, observation.seconds, pretrained_.features));
    }
    if (samples_.size() > kMaximum)
      samples_.erase(samples_.begin(), samples_.end() - static_cast<std::ptrdiff_t>(kMaximum));
    fresh_ += observations.size();
    // The more there is, the longer a fit takes and the less a few more change.
    if (fresh_ < std::max(kRefit, samples_.size() / kRefitShare) || samples_.size() < kMinimum)
      return ok_status();
    fresh_ = 0;
    HONE_ASSIGN_OR_RETURN(online_, boost(make_rows(samples_, pretrained_.trees, trust_), kOnline));
    ++revision_;
    return ok_status();
  }

  [[nodiscard]] bool learns() const override { return boosting_status().ok(); }
  [[nodiscard]] uint64_t revision() const override { return revision_; }

 private:
  TrainedTrees pretrained_;
  double trust_;
  Trees online_;
  std::vector<Sample> samples_;
  size_t fresh_ = 0;
  uint64_t revision_ = 0;
};

Result<std::vector<Sample>> make_samples(std::span<const DeviceTrials> devices,
                                         FeatureSet features) {
  std::vector<Sample> samples;
  for (size_t device = 0; device < devices.size(); ++device) {
    const auto& [dataset, target] = devices[device];
    for (const TaskTrials& task : dataset->tasks) {
      // Another device or number of threads makes another order of the same schedules.
      const uint64_t group = hash_combine(task.key, hash_combine(device, task.threads));
      for (const MeasuredSteps& trial : task.trials) {
        HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                              space::make_candidate(*task.dag, trial.steps));
        samples.push_back(
            make_sample({&candidate, target, task.threads, group}, trial.seconds, features));
      }
    }
  }
  return samples;
}

}  // namespace

std::string_view model_name(FeatureSet features) {
  return features == FeatureSet::kStatements ? "gbdt" : "combined";
}

std::unique_ptr<CostModel> make_gbdt_model(TrainedTrees pretrained, double trust) {
  return std::make_unique<GbdtModel>(std::move(pretrained), trust);
}

double trust_in_search(const TrainedTrees& trained) {
  if (trained.features != FeatureSet::kCombined) return 1;
  const auto loss = trained.card.find(kLoss);
  return loss != trained.card.end() && loss->second == kPairs ? 1 : 0.5;
}

Result<TrainedTrees> train(std::span<const DeviceTrials> devices, FeatureSet features,
                           const BoostOptions& options) {
  HONE_RETURN_IF_ERROR(boosting_status(options.library));
  HONE_ASSIGN_OR_RETURN(const std::vector<Sample> samples, make_samples(devices, features));
  HONE_ASSIGN_OR_RETURN(Trees trees, boost(make_rows(samples), options));
  const bool pairs = options.pairs > 0 && options.rounds > options.value_trees;
  return TrainedTrees{features, std::move(trees), {{kLoss, pairs ? kPairs : "values"}}};
}

Result<TrainedTrees> adapt(TrainedTrees known, std::span<const DeviceTrials> devices,
                           TreeLibrary library) {
  HONE_RETURN_IF_ERROR(boosting_status(library));
  HONE_ASSIGN_OR_RETURN(const std::vector<Sample> samples, make_samples(devices, known.features));
  BoostOptions options = kOnline;
  options.library = library;
  HONE_ASSIGN_OR_RETURN(const Trees more, boost(make_rows(samples, known.trees), options));
  known.trees.append(more);
  return known;
}

}  // namespace hone::cost
