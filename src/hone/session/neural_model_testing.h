// neural_model_testing.h - a small net and real candidates, for tests of neural cost models.
#pragma once

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/cost/net/family.h"
#include "hone/cost/net/net_testing.h"
#include "hone/cost/registry.h"
#include "hone/neural/net_file.h"
#include "hone/space/space.h"
#include "hone/target/target.h"

// It is empty in a build without libtorch.
#ifndef HONE_TORCH_LIBRARY
#define HONE_TORCH_LIBRARY ""
#endif

namespace hone {

// Returns a net of the family "small" with the options of small_card().
inline cost::net::Net small_net(uint64_t seed = 3) {
  const cost::net::Family* family = cost::net::find_family("small").value();
  cost::net::Net small =
      cost::net::make_net(*family, cost::net::all_inputs(), {{"hidden", 8}, {"heads", 2}}).value();
  cost::net::initialise(small, seed);
  return small;
}

inline NetCard small_card(double log_seconds_per_score = 1) {
  NetCard card{.log_seconds_per_score = log_seconds_per_score};
  card.notes = {{"options", "hidden=8,heads=2"}, {"loss", "pairwise"}};
  return card;
}

// Candidates of a task: the default schedule, then random points of its space.
struct Sampled {
  space::Space space;
  std::vector<space::Candidate> candidates;
  std::vector<cost::Query> queries;

  Sampled(const compute::Dag& dag, int number)
      : space(space::Space::create(dag, target::host()).value()) {
    candidates.push_back(space.instantiate(space.default_point()).value());
    Rng rng(1);
    while (std::ssize(candidates) < number) {
      Result<space::Candidate> candidate = space.instantiate(space.sample(rng));
      if (candidate.ok()) candidates.push_back(*std::move(candidate));
    }
    for (const space::Candidate& candidate : candidates)
      queries.push_back({&candidate, &target::host(), 1, compute::task_key(dag)});
  }

  // Returns the seconds that the analytic model predicts for the first candidate, which is the
  // default schedule.
  [[nodiscard]] double default_seconds() const {
    return cost::make_model("analytic").value()->predict({queries.data(), 1}).value()[0];
  }
};

// Returns the outputs that the plain evaluator computes.
inline std::vector<std::vector<float>> plain_outputs(const cost::net::Net& of,
                                                     std::span<const cost::Query> queries) {
  cost::net::NetBatch batch{.rows = std::ssize(queries)};
  batch.inputs.resize(of.inputs.size());
  for (const cost::Query& query : queries) {
    const cost::ModelInputs inputs = cost::model_inputs(query).value();
    for (size_t i = 0; i < of.inputs.size(); ++i) {
      const auto place = static_cast<size_t>(*cost::find_input(of.inputs[i].name));
      batch.inputs[i].insert(batch.inputs[i].end(), inputs.values[place].begin(),
                             inputs.values[place].end());
    }
  }
  return cost::net::evaluate(of, batch);
}

inline std::vector<double> plain_scores(const cost::net::Net& of,
                                        std::span<const cost::Query> queries) {
  const std::vector<float> scores = plain_outputs(of, queries)[0];
  return {scores.begin(), scores.end()};
}

}  // namespace hone
