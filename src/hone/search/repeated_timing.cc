#include "hone/search/repeated_timing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::search {
namespace {

// The fastest samples of the passes so far.
struct Passes {
  double best = std::numeric_limits<double>::infinity(), second = best;
  void add(double seconds) {
    second = std::min(second, std::max(best, seconds));
    best = std::min(best, seconds);
  }
  [[nodiscard]] bool agree() const { return second <= kPassesAgree * best; }
};

}  // namespace

double fastest(const measure::Measurement& measurement) {
  const std::vector<double>& samples = measurement.timing.samples;
  if (measurement.outcome != trial::Outcome::kOk || samples.empty())
    return std::numeric_limits<double>::infinity();
  return *std::min_element(samples.begin(), samples.end());
}

Result<std::vector<measure::Measurement>> time_repeatedly(std::span<const measure::Job> jobs,
                                                          double reference,
                                                          const Execute& execute) {
  HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> all, execute({jobs.begin(), jobs.end()}));
  if (all.size() != jobs.size()) return std::vector<measure::Measurement>();
  std::vector<Passes> passes(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) passes[i].add(fastest(all[i]));
  for (int pass = 1; pass < kMaxPasses; ++pass) {
    std::vector<size_t> places;
    std::vector<measure::Job> again;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const double seconds = passes[i].best;
      const bool slow = reference > 0 && seconds > kSlowOnce * reference;
      if (!std::isfinite(seconds) || slow || passes[i].agree()) continue;
      places.push_back(i);
      again.push_back(jobs[i]);
      again.back().tolerance = 0;  // it was verified
      again.back().count_bounds = false;
    }
    if (again.empty()) break;
    const size_t count = again.size();
    HONE_ASSIGN_OR_RETURN(const std::vector<measure::Measurement> answers,
                          execute(std::move(again)));
    if (answers.size() != count) return std::vector<measure::Measurement>();
    for (size_t k = 0; k < count; ++k) {
      // It ran before: what happens now is the machine's fault, or it fails now and then.
      measure::Measurement& first = all[places[k]];
      if (answers[k].outcome != trial::Outcome::kOk) {
        first = answers[k];
        passes[places[k]] = {};
        continue;
      }
      trial::Timing& timing = first.timing;
      timing.samples.insert(timing.samples.end(), answers[k].timing.samples.begin(),
                            answers[k].timing.samples.end());
      timing.runs += answers[k].timing.runs;
      trial::summarise(timing);
      passes[places[k]].add(fastest(answers[k]));
    }
  }
  return all;
}

}  // namespace hone::search
