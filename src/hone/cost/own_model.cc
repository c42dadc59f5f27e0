#include "hone/cost/own_model.h"

#include <fmt/ranges.h>

#include <atomic>
#include <cmath>

#include "hone/cost/row_model.h"

namespace hone {

namespace {

struct NamedSet {
  const char* name;
  cost::FeatureSet set;
};
constexpr NamedSet kSets[] = {{"statements", cost::FeatureSet::kStatements},
                              {"measure", cost::FeatureSet::kMeasure},
                              {"combined", cost::FeatureSet::kCombined},
                              {"gpu", cost::FeatureSet::kGpu}};

}  // namespace

OwnCostModel::~OwnCostModel() = default;

std::vector<std::string> feature_sets() {
  std::vector<std::string> names;
  for (const NamedSet& set : kSets) names.emplace_back(set.name);
  return names;
}

std::vector<std::string> feature_names(const std::string& set) {
  for (const NamedSet& known : kSets) {
    if (known.name == set) return cost::candidate_feature_names(known.set);
  }
  return {};
}

namespace cost {
namespace {

class OwnModel : public RowModel {
 public:
  OwnModel(OwnCostModel& own, FeatureSet set, FirstFailure& failure)
      : own_(own), set_(set), failure_(failure) {}

  [[nodiscard]] std::string_view name() const override { return "own"; }
  [[nodiscard]] bool knows(target::Kind kind) const override { return kind == device_kind(set_); }
  [[nodiscard]] bool learns() const override { return own_.learns(); }
  [[nodiscard]] uint64_t revision() const override { return revision_; }
  [[nodiscard]] CandidateFeatures row(const Query& query) const override {
    return candidate_features(query, set_);
  }
  [[nodiscard]] Result<std::vector<double>> predict(std::span<const Query> queries) const override;
  [[nodiscard]] Result<std::vector<double>> predict_rows(
      uint64_t task, int threads, std::span<const CandidateFeatures> rows) const override;
  [[nodiscard]] Status update(std::span<const Observation> observations) override;

 private:
  void fail(const Status& error) const {
    failure_.add(error);
    ++revision_;  // what was predicted before does not go with the first estimates
  }

  OwnCostModel& own_;
  const FeatureSet set_;
  FirstFailure& failure_;
  mutable std::atomic<uint64_t> revision_ = 0;
};

FeatureBatch batch_of(uint64_t task, int threads, std::span<const CandidateFeatures> rows) {
  FeatureBatch batch{.task = task, .threads = threads, .rows = {}};
  batch.rows.width = rows.empty() ? 0 : rows.front().row.size();
  batch.rows.values.reserve(rows.size() * batch.rows.width);
  batch.rows.estimates.reserve(rows.size());
  for (const CandidateFeatures& row : rows) {
    batch.rows.values.insert(batch.rows.values.end(), row.row.begin(), row.row.end());
    batch.rows.estimates.push_back(row.base_seconds);
  }
  return batch;
}

Status check_times(std::span<const double> seconds, size_t count) {
  if (seconds.size() != count)
    return invalid("the cost model predicted {} times, expected {}", seconds.size(), count);
  for (size_t i = 0; i < count; ++i) {
    if (!(seconds[i] > 0) || !std::isfinite(seconds[i]))
      return invalid("the cost model predicted {} seconds for row {}, expected a number above 0",
                     seconds[i], i);
  }
  return ok_status();
}

Result<std::vector<double>> OwnModel::predict_rows(uint64_t task, int threads,
                                                   std::span<const CandidateFeatures> rows) const {
  if (!rows.empty() && !failure_.failed()) {
    Result<std::vector<double>> seconds = own_.predict(batch_of(task, threads, rows));
    const Status status = seconds.ok() ? check_times(*seconds, rows.size()) : seconds.status();
    if (status.ok()) return seconds;
    fail(status);
  }
  std::vector<double> estimates;
  estimates.reserve(rows.size());
  for (const CandidateFeatures& row : rows) estimates.push_back(row.base_seconds);
  return estimates;
}

// Consecutive queries of one task are one batch.
Result<std::vector<double>> OwnModel::predict(std::span<const Query> queries) const {
  std::vector<double> all;
  for (size_t begin = 0; begin < queries.size();) {
    std::vector<CandidateFeatures> rows;
    const Query& first = queries[begin];
    for (; begin < queries.size() && queries[begin].task == first.task; ++begin)
      rows.push_back(row(queries[begin]));
    HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                          predict_rows(first.task, first.threads, rows));
    all.insert(all.end(), seconds.begin(), seconds.end());
  }
  return all;
}

Status OwnModel::update(std::span<const Observation> observations) {
  for (size_t begin = 0; begin < observations.size() && !failure_.failed();) {
    std::vector<CandidateFeatures> rows;
    std::vector<double> seconds;
    const Query& first = observations[begin].query;
    for (; begin < observations.size() && observations[begin].query.task == first.task; ++begin) {
      rows.push_back(row(observations[begin].query));
      seconds.push_back(observations[begin].seconds);
    }
    const Result<bool> changed = own_.update(batch_of(first.task, first.threads, rows), seconds);
    if (!changed.ok()) {
      fail(changed.status());
    } else if (*changed) {
      ++revision_;
    }
  }
  return ok_status();
}

}  // namespace

const RowModel* as_row_model(const CostModel& model) {
  return dynamic_cast<const RowModel*>(&model);
}

Result<FeatureSet> parse_feature_set(const std::string& name, target::Kind kind) {
  if (name.empty()) return kind == target::Kind::kGpu ? FeatureSet::kGpu : FeatureSet::kCombined;
  for (const NamedSet& known : kSets) {
    if (known.name != name) continue;
    if (device_kind(known.set) == kind) return known.set;
    const bool gpu = kind == target::Kind::kGpu;
    return invalid("the features '{}' are of {}, expected those of {}", name, gpu ? "CPUs" : "GPUs",
                   gpu ? "GPUs: gpu" : "CPUs");
  }
  return invalid("there are no features '{}', expected one of {}", name,
                 fmt::join(feature_sets(), ", "));
}

Result<std::unique_ptr<CostModel>> make_own_model(OwnCostModel& own, target::Kind kind,
                                                  FirstFailure& failure) {
  HONE_ASSIGN_OR_RETURN(const FeatureSet set, parse_feature_set(own.features(), kind));
  return std::unique_ptr<CostModel>(std::make_unique<OwnModel>(own, set, failure));
}

}  // namespace cost
}  // namespace hone
