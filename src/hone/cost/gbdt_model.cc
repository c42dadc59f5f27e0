#include "hone/cost/gbdt_model.h"

#include <algorithm>
#include <cmath>

#include "hone/cost/tree_samples.h"

namespace hone::cost {
namespace {

constexpr size_t kRefit = 64;      // new measurements between two fits, or ...
constexpr size_t kRefitShare = 8;  // ... this part of all
constexpr size_t kMinimum = 32;    // measurements before the first
constexpr size_t kMaximum = 4000;  // the newest that a fit looks at

class GbdtModel : public CostModel {
 public:
  GbdtModel(std::shared_ptr<const TrainedTrees> pretrained, double trust)
      : pretrained_(std::move(pretrained)), trust_(trust) {}

  [[nodiscard]] std::string_view name() const override { return model_name(pretrained_->features); }

  [[nodiscard]] Result<std::vector<double>> predict(std::span<const Query> queries) const override {
    std::vector<double> seconds, known(queries.size()), learnt(queries.size());
    std::vector<float> rows;
    for (const Query& query : queries) HONE_RETURN_IF_ERROR(check_device(*query.target));
    for (const Query& query : queries) {
      const CandidateFeatures features = candidate_features(query, pretrained_->features);
      rows.insert(rows.end(), features.row.begin(), features.row.end());
      seconds.push_back(features.base_seconds);
    }
    pretrained_->trees.predict(rows, known);
    online_.predict(rows, learnt);
    for (size_t i = 0; i < seconds.size(); ++i)
      seconds[i] *= std::exp(trust_ * known[i] + learnt[i]);
    return seconds;
  }

  [[nodiscard]] Status update(std::span<const Observation> observations) override {
    if (!learns()) return ok_status();  // what was trained before has to do
    for (const Observation& observation : observations) {
      if (!std::isfinite(observation.seconds) || observation.seconds <= 0) continue;
      HONE_RETURN_IF_ERROR(check_device(*observation.query.target));
      samples_.push_back(
          make_tree_sample(observation.query, observation.seconds, pretrained_->features));
    }
    if (samples_.size() > kMaximum)
      samples_.erase(samples_.begin(), samples_.end() - static_cast<std::ptrdiff_t>(kMaximum));
    fresh_ += observations.size();
    // The more there is, the longer a fit takes and the less a few more change.
    if (fresh_ < std::max(kRefit, samples_.size() / kRefitShare) || samples_.size() < kMinimum)
      return ok_status();
    fresh_ = 0;
    HONE_ASSIGN_OR_RETURN(online_,
                          boost(training_rows(samples_, pretrained_->trees, trust_), kFewTrees));
    ++revision_;
    return ok_status();
  }

  [[nodiscard]] bool learns() const override { return boosting_status().ok(); }
  [[nodiscard]] bool knows(target::Kind kind) const override {
    return kind == device_kind(pretrained_->features);
  }
  [[nodiscard]] uint64_t revision() const override { return revision_; }

 private:
  [[nodiscard]] Status check_device(const target::Target& target) const {
    if (knows(target.kind())) return ok_status();
    return invalid("cost model '{}' does not know devices like {}", name(), target.name);
  }

  std::shared_ptr<const TrainedTrees> pretrained_;
  double trust_;
  Trees online_;
  std::vector<TreeSample> samples_;
  size_t fresh_ = 0;
  uint64_t revision_ = 0;
};

}  // namespace

std::string_view model_name(FeatureSet features) {
  switch (features) {
    case FeatureSet::kStatements: return "gbdt";
    case FeatureSet::kGpu: return "gpu";
    default: return "combined";
  }
}

std::unique_ptr<CostModel> make_gbdt_model(TrainedTrees pretrained, double trust) {
  return make_gbdt_model(std::make_shared<const TrainedTrees>(std::move(pretrained)), trust);
}

std::unique_ptr<CostModel> make_gbdt_model(std::shared_ptr<const TrainedTrees> pretrained,
                                           double trust) {
  return std::make_unique<GbdtModel>(std::move(pretrained), trust);
}

double trust_in_search(const TrainedTrees& trained) {
  if (trained.features == FeatureSet::kStatements) return 1;
  const auto loss = trained.card.find(kLossNote);
  return loss != trained.card.end() && loss->second == kPairsLoss ? 1 : 0.5;
}

}  // namespace hone::cost
