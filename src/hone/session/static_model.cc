#include "hone/session/static_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "hone/analysis/cpu_measure.h"
#include "hone/backend/registry.h"
#include "hone/schedule/lower.h"

namespace hone {
namespace {

constexpr size_t kLevels = 3;         // caches that have a feature
constexpr size_t kMostKept = 20'000;  // candidates whose features are kept

// The cycles of data movement, and the share of all work that the busiest thread has.
struct Movement {
  std::vector<double> cycles = std::vector<double>(kLevels, 0);
  double share = 1;
};
Movement movement_of(const cost::Query& query) {
  Movement movement;
  double work = 0, busiest = 0;
  for (const analysis::RootMeasure& root :
       analysis::measure_cpu(query.candidate->state, query.candidate->bounds, query.cpu(),
                             query.threads)
           .roots) {
    const double share = root.busiest_share(query.threads);
    work += root.compute_cycles, busiest += share * root.compute_cycles;
    for (size_t level = 0; level < root.level_cycles.size(); ++level)
      movement.cycles[std::min(level, kLevels - 1)] += share * root.level_cycles[level];
  }
  if (work > 0) movement.share = busiest / work;
  return movement;
}

class StaticModel final : public cost::CostModel {
 public:
  StaticModel(cost::StaticScore score, std::string name)
      : score_(std::move(score)), name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return "static"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries) {
      const std::string found = cost::instruction_set(query.cpu());
      if (found != score_.instruction_set) {
        return error(Code::kUnsupported,
                     "{}: fitted for {}, expected {} for device {}: fit it there (hone train "
                     "--cost static)",
                     name_, score_.instruction_set, found, query.target->name);
      }
      const Result<std::vector<double>> features = features_of(query);
      seconds.push_back(features.ok() ? score_.seconds(*features, query.cpu().ghz)
                                      : std::numeric_limits<double>::infinity());
    }
    return seconds;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }

 private:
  using Key = std::tuple<uint64_t, uint64_t, int, std::string>;
  Result<std::vector<double>> features_of(const cost::Query& query) const {
    const Key key(query.task, schedule::hash(query.candidate->steps), query.threads,
                  query.target->name);
    {
      const std::lock_guard lock(mutex_);
      const auto known = known_.find(key);
      if (known != known_.end()) return known->second;
    }
    HONE_ASSIGN_OR_RETURN(std::vector<double> features, static_features(query));
    const std::lock_guard lock(mutex_);
    if (known_.size() < kMostKept) known_.emplace(key, features);
    return features;
  }

  const cost::StaticScore score_;
  const std::string name_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::vector<double>> known_;
};

}  // namespace

Result<std::vector<double>> static_features(const cost::Query& query) {
  const target::Target& target = *query.target;
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const backend::Backend> backend, backend::of(target));
  HONE_ASSIGN_OR_RETURN(const ir::Program program,
                        schedule::lower(query.candidate->state, query.candidate->bounds,
                                        {.parameters = target.passes}));
  HONE_ASSIGN_OR_RETURN(const backend::Executable code, backend->compile(program, target, ""));
  HONE_ASSIGN_OR_RETURN(const std::vector<CountedCode> counts,
                        backend->count(program, code, target));
  const Movement movement = movement_of(query);
  std::vector<double> features(cost::static_feature_names().size() - kLevels - 1, 0);
  for (const CountedCode& counted : counts) {
    if (!counted.failure.empty()) return error(Code::kUnsupported, "{}", counted.failure);
    const InstructionMix& mix = counted.executed;
    size_t at = 0;
    for (const int64_t part :
         {mix.fma, mix.arithmetic, mix.load, mix.store, mix.shuffle, mix.scalar, mix.branch})
      features[at++] += movement.share * static_cast<double>(part);
    features[at++] += movement.share * counted.cycles;
    features[at++] += movement.share * counted.mca_cycles;
  }
  features.insert(features.end(), movement.cycles.begin(), movement.cycles.end());
  const double launch = query.threads > 1 ? analysis::kForkJoinSeconds * query.cpu().ghz * 1e9 : 1;
  features.push_back(launch * static_cast<double>(counts.size()));
  return features;
}

std::unique_ptr<cost::CostModel> make_static_model(cost::StaticScore score, std::string name) {
  return std::make_unique<StaticModel>(std::move(score), std::move(name));
}

}  // namespace hone
