// Candidates per second and core: sampled, made concrete and predicted by a cost model, in batches
// as a search asks for them, with nothing kept from one to the next. Prints how many are distinct
// and legal, and the microseconds of the core's time that each part of the work takes; of a model
// that learns also what telling it measurements takes.
//   hone_candidates [SECONDS] [COST] [ADAPT]
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_set>

#include "hone/base/clock.h"
#include "hone/compute/dag_testing.h"
#include "hone/options.h"
#include "hone/session/cost_models.h"
#include "hone/target/target.h"

namespace hone {
namespace {

constexpr int kBatch = 64;

struct Count {
  int64_t sampled = 0, legal = 0;
  std::unordered_set<uint64_t> distinct;                   // legal ones
  double sampling = 0, instantiating = 0, predicting = 0;  // seconds
  double checksum = 0;  // of the predictions, so that none can be left out
  [[nodiscard]] double seconds() const { return sampling + instantiating + predicting; }
};

Result<Count> measure(const compute::Dag& dag, const cost::CostModel& model, double seconds) {
  const target::Target& target = target::host();
  HONE_ASSIGN_OR_RETURN(const space::Space space, space::Space::create(dag, target));
  const uint64_t key = compute::task_key(dag);
  Rng rng(1);
  Count count;
  while (count.seconds() < seconds) {
    const double start = thread_seconds();
    std::vector<space::Point> points;
    for (int i = 0; i < kBatch; ++i) points.push_back(space.sample(rng));
    const double sampled = thread_seconds();
    std::vector<space::Candidate> candidates;
    candidates.reserve(kBatch);  // queries point into it
    std::vector<cost::Query> queries;
    for (const space::Point& point : points) {
      Result<space::Candidate> candidate = space.instantiate(point);
      if (!candidate.ok()) continue;
      candidates.push_back(*std::move(candidate));
      queries.push_back({&candidates.back(), &target, 1, key});
      count.distinct.insert(hash(point));
    }
    const double made = thread_seconds();
    HONE_ASSIGN_OR_RETURN(const std::vector<double> predicted, model.predict(queries));
    for (const double value : predicted) count.checksum += value;
    candidates.clear();
    const double end = thread_seconds();
    count.sampled += kBatch;
    count.legal += std::ssize(queries);
    count.sampling += sampled - start;
    count.instantiating += made - sampled;
    count.predicting += end - made;
  }
  return count;
}

struct Updates {
  int64_t number = 0, changes = 0;
  double all = 0, longest = 0;  // seconds
};

// Tells the model made-up times of random candidates, as a search does: 8 at a time.
Result<Updates> measure_updates(const compute::Dag& dag, cost::CostModel& model) {
  constexpr int kTold = 8, kUpdates = 250;
  const target::Target& target = target::host();
  HONE_ASSIGN_OR_RETURN(const space::Space space, space::Space::create(dag, target));
  const uint64_t key = compute::task_key(dag);
  Rng rng(1);
  Updates updates;
  while (updates.number < kUpdates) {
    std::vector<space::Candidate> candidates;
    while (candidates.size() < kTold) {
      Result<space::Candidate> candidate = space.instantiate(space.sample(rng));
      if (candidate.ok()) candidates.push_back(*std::move(candidate));
    }
    std::vector<cost::Observation> observations;
    for (const space::Candidate& candidate : candidates)
      observations.push_back({{&candidate, &target, 1, key}, 1e-3 * std::exp(rng.normal())});
    const uint64_t revision = model.revision();
    const double start = thread_seconds();
    HONE_RETURN_IF_ERROR(model.update(observations));
    const double taken = thread_seconds() - start;
    ++updates.number;
    updates.changes += model.revision() != revision ? 1 : 0;
    updates.all += taken;
    updates.longest = std::max(updates.longest, taken);
  }
  return updates;
}

int measure_rates(double seconds, const std::string& cost, const std::string& adapt) {
  const auto model = make_cost_model({.cost = cost, .adapt = adapt});
  if (!model.ok()) {
    fmt::print(stderr, "hone: {}\n", model.status().message());
    return 1;
  }
  const std::pair<const char*, compute::Dag> tasks[] = {
      {"conv2d+bias+relu 3x3, 56x56x64 -> 64",
       compute::testing::conv2d({.h = 56, .w = 56, .ic = 64, .oc = 64})},
      {"conv2d+bias+relu 3x3, 14x14x256 -> 256",
       compute::testing::conv2d({.h = 14, .w = 14, .ic = 256, .oc = 256})},
      {"matmul 512x512x512", compute::testing::gemm(512, 512, 512)}};
  for (const auto& [name, dag] : tasks) {
    const Result<Count> count = measure(dag, **model, seconds);
    if (!count.ok()) {
      fmt::print(stderr, "hone: {}: {}\n", name, count.status().message());
      return 1;
    }
    const double legal = static_cast<double>(count->legal);
    fmt::print(
        "{:<40} {:>8.0f} distinct legal candidates/s  (of {}: {} legal, {} distinct; microseconds: "
        "sample {:.1f}, instantiate {:.1f}, predict {:.1f}; mean {:.3g} s)\n",
        name, static_cast<double>(count->distinct.size()) / count->seconds(), count->sampled,
        count->legal, count->distinct.size(), 1e6 * count->sampling / legal,
        1e6 * count->instantiating / legal, 1e6 * count->predicting / legal,
        count->checksum / legal);
  }
  if (!(*model)->learns()) return 0;
  const Result<Updates> updates = measure_updates(tasks[0].second, **model);
  if (!updates.ok()) {
    fmt::print(stderr, "hone: {}\n", updates.status().message());
    return 1;
  }
  fmt::print(
      "{} updates of 8 measurements, {} of which changed it: {:.2f} ms in the mean, {:.1f} ms at most\n",
      updates->number, updates->changes, 1e3 * updates->all / static_cast<double>(updates->number),
      1e3 * updates->longest);
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  return hone::measure_rates(argc > 1 ? std::atof(argv[1]) : 2.0,
                             argc > 2 ? argv[2] : hone::cost::default_model(hone::target::host()),
                             argc > 3 ? argv[3] : hone::SearchOptions().adapt);
}
