#include "hone/session/static_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "hone/analysis/cache_rates.h"
#include "hone/analysis/cpu_measure.h"
#include "hone/analysis/shared_traffic.h"
#include "hone/backend/registry.h"
#include "hone/base/file.h"
#include "hone/base/options.h"
#include "hone/base/split_options.h"
#include "hone/schedule/lower.h"

namespace hone {
namespace {

constexpr size_t kLevels = 3;         // caches that have a feature
constexpr size_t kMostKept = 20'000;  // candidates whose features are kept

// The cycles of data movement, and the share of all work that the busiest thread has.
struct Movement {
  std::vector<double> cycles = std::vector<double>(kLevels, 0);  // each stage on its own
  std::vector<double> shared = std::vector<double>(kLevels, 0);  // all stages of a root together
  double share = 1;
};
Movement movement_of(const cost::Query& query) {
  Movement movement;
  const std::vector<analysis::Nest> nests =
      analysis::build_nests(query.candidate->state, query.candidate->bounds);
  const std::vector<analysis::RootTraffic> shared =
      analysis::shared_traffic(nests, query.cpu(), query.threads);
  double work = 0, busiest = 0;
  size_t r = 0;
  for (const analysis::RootMeasure& root :
       analysis::measure_cpu(nests, query.cpu(), query.threads).roots) {
    const double share = root.busiest_share(query.threads);
    work += root.compute_cycles, busiest += share * root.compute_cycles;
    for (size_t level = 0; level < root.level_cycles.size(); ++level) {
      const size_t named = std::min(level, kLevels - 1);
      movement.cycles[named] += share * root.level_cycles[level];
      movement.shared[named] +=
          share * analysis::transfer_cycles(query.cpu(), level, shared[r].bytes[level]);
    }
    ++r;
  }
  if (work > 0) movement.share = busiest / work;
  return movement;
}

Status check_instructions(const cost::StaticScore& score, const std::string& name,
                          const target::Target& target) {
  if (target.kind() != target::Kind::kCpu)
    return error(Code::kUnsupported, "{}: fitted for {}, expected a CPU, found device {}", name,
                 score.instruction_set, target.name);
  const std::string found = cost::instruction_set(target.cpu());
  if (found == score.instruction_set) return ok_status();
  return error(Code::kUnsupported,
               "{}: fitted for {}, expected {} for device {}: fit it there (hone train --cost "
               "static)",
               name, score.instruction_set, found, target.name);
}

// A coefficient that the fit made 0 needs no feature; LLVM's model takes most of the time.
backend::CountOptions needed_by(const cost::StaticScore& score) {
  const std::span<const std::string_view> names = cost::static_feature_names();
  const auto mca = static_cast<size_t>(std::ranges::find(names, "mca_cycles") - names.begin());
  return {.simulates = score.coefficients[mca] > 0};
}

class StaticModel final : public cost::CostModel {
 public:
  StaticModel(cost::StaticScore score, std::string name)
      : score_(std::move(score)), name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return kStaticModel; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries) {
      HONE_RETURN_IF_ERROR(check_instructions(score_, name_, *query.target));
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
    HONE_ASSIGN_OR_RETURN(std::vector<double> features, static_features(query, needed_by(score_)));
    const std::lock_guard lock(mutex_);
    if (known_.size() < kMostKept) known_.emplace(key, features);
    return features;
  }

  const cost::StaticScore score_;
  const std::string name_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::vector<double>> known_;
};

// The score of candidates that are compiled already.
class StaticCodeScore final : public search::CodeScore {
 public:
  explicit StaticCodeScore(cost::StaticScore score) : score_(std::move(score)) {}
  [[nodiscard]] Result<double> seconds(const cost::Query& query, const ir::Program& program,
                                       const backend::Executable& code) const override {
    HONE_ASSIGN_OR_RETURN(const std::vector<double> features,
                          static_features(query, program, code, needed_by(score_)));
    return score_.seconds(features, query.cpu().ghz);
  }

 private:
  const cost::StaticScore score_;
};

}  // namespace

Result<std::vector<double>> static_features(const cost::Query& query,
                                            const backend::CountOptions& how) {
  const target::Target& target = *query.target;
  HONE_ASSIGN_OR_RETURN(const ir::Program program,
                        schedule::lower(query.candidate->state, query.candidate->bounds,
                                        {.parameters = target.passes}));
  HONE_ASSIGN_OR_RETURN(const backend::Executable code, backend::compile(program, target));
  return static_features(query, program, code, how);
}

Result<std::vector<double>> static_features(const cost::Query& query, const ir::Program& program,
                                            const backend::Executable& code,
                                            const backend::CountOptions& how) {
  const target::Target& target = *query.target;
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const backend::Backend> backend, backend::of(target));
  HONE_ASSIGN_OR_RETURN(const std::vector<CountedCode> counts,
                        backend->count(program, code, target, how));
  const Movement movement = movement_of(query);
  std::vector<double> features(cost::static_feature_names().size() - 2 * kLevels - 1, 0);
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
  features.insert(features.end(), movement.shared.begin(), movement.shared.end());
  const double launch = query.threads > 1 ? analysis::kForkJoinSeconds * query.cpu().ghz * 1e9 : 1;
  features.push_back(launch * static_cast<double>(counts.size()));
  return features;
}

std::unique_ptr<cost::CostModel> make_static_model(cost::StaticScore score, std::string name) {
  return std::make_unique<StaticModel>(std::move(score), std::move(name));
}

Result<std::unique_ptr<search::CodeFilter>> make_code_filter(const std::string& text,
                                                             const target::Target& target) {
  const auto [name, options] = split_options(text);
  const std::string file(name);
  HONE_ASSIGN_OR_RETURN(const search::FilterLimits limits,
                        of_option("--filter", search::parse_filter_limits(options)));
  HONE_ASSIGN_OR_RETURN(const std::string content, read_file(file));
  if (!cost::is_static_score(content))
    return invalid(
        "--filter: {} is no score of machine code, expected a file of hone train --cost "
        "static",
        file);
  HONE_ASSIGN_OR_RETURN(cost::StaticScore score, cost::parse_static(content, file));
  HONE_RETURN_IF_ERROR(check_instructions(score, file, target));
  return std::make_unique<search::CodeFilter>(std::make_unique<StaticCodeScore>(std::move(score)),
                                              limits);
}

}  // namespace hone
