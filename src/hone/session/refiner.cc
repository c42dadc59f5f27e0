#include "hone/session/refiner.h"

#include <algorithm>
#include <cmath>

#include "hone/base/option_fields.h"
#include "hone/base/split_options.h"
#include "hone/cost/registry.h"
#include "hone/session/cost_models.h"

namespace hone {
namespace {

constexpr OptionField<RefineOptions> kFields[] = {
    {"candidates", "schedules of a kernel that are compared", 2, 1000, &RefineOptions::candidates},
    {"weight", "share of the decision that is the second model's", 0.01, 1,
     &RefineOptions::weight}};

double log_of(double seconds) { return std::log(std::max(seconds, 1e-12)); }

}  // namespace

Result<std::shared_ptr<const Refiner>> make_refiner(const CompileOptions& options,
                                                    const target::Target& target) {
  if (options.advanced.refine.empty()) return std::shared_ptr<const Refiner>();
  const auto [name, fields] = split_options(options.advanced.refine);
  Refiner refiner{.name = std::string(name)};
  HONE_ASSIGN_OR_RETURN(refiner.options,
                        of_option("--refine", parse_fields<RefineOptions>(fields, kFields, {})));
  const std::string full = name == cost::kAutoModel ? cost::default_model(target) : refiner.name;
  HONE_ASSIGN_OR_RETURN(refiner.model,
                        make_cost_model({full, options.records.db, options.records.use_db}));
  HONE_RETURN_IF_ERROR(cost::check_knows(*refiner.model, full, target));
  return std::make_shared<const Refiner>(std::move(refiner));
}

Result<size_t> refined_choice(const Refiner& refiner, const compute::Dag& dag,
                              const target::Target& target, int threads,
                              std::span<const Rival> rivals, double margin) {
  std::vector<space::Candidate> candidates;
  candidates.reserve(rivals.size());  // queries point into it
  std::vector<cost::Query> queries;
  for (const Rival& rival : rivals) {
    HONE_ASSIGN_OR_RETURN(space::Candidate candidate, space::make_candidate(dag, *rival.steps));
    candidates.push_back(std::move(candidate));
    queries.push_back({&candidates.back(), &target, threads, compute::task_key(dag)});
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds, refiner.model->predict(queries));
  const double weight = refiner.options.weight;
  const auto log_seconds = [&](size_t i) {
    return (1 - weight) * log_of(rivals[i].predicted_seconds) + weight * log_of(seconds[i]);
  };
  size_t best = 0;
  double to_beat = log_seconds(0) + std::log1p(-margin);
  for (size_t i = 1; i < rivals.size(); ++i) {
    if (log_seconds(i) < to_beat) best = i, to_beat = log_seconds(i);
  }
  return best;
}

}  // namespace hone
