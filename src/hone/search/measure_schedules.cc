#include "hone/search/measure_schedules.h"

#include <algorithm>
#include <cmath>

namespace hone::search {

Result<std::vector<double>> measure_schedules(TaskTuner& tuner, measure::Runner& runner,
                                              std::span<const schedule::Steps> schedules,
                                              int rounds, ThreadPool& pool) {
  std::vector<schedule::Steps> distinct;
  std::vector<size_t> place;  // of each schedule in `distinct`
  for (const schedule::Steps& steps : schedules) {
    const auto at = std::find(distinct.begin(), distinct.end(), steps);
    place.push_back(static_cast<size_t>(at - distinct.begin()));
    if (at == distinct.end()) distinct.push_back(steps);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, tuner.candidates_of(distinct));
  pool.parallel_for(std::ssize(candidates),
                    [&](int64_t i) { tuner.build(candidates[static_cast<size_t>(i)]); });
  std::vector<double> seconds(distinct.size(), INFINITY);
  for (int round = 0; round < rounds; ++round) {
    std::vector<measure::Job> jobs;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!candidates[i].runs()) continue;
      jobs.push_back(candidates[i].job);
      jobs.back().id = i;
    }
    HONE_RETURN_IF_ERROR(runner.submit(std::move(jobs)));
    HONE_ASSIGN_OR_RETURN(const std::vector<measure::Measurement> answers, runner.collect());
    for (const measure::Measurement& answer : answers) {
      if (answer.outcome == trial::Outcome::kOk)
        seconds[answer.id] = std::min(seconds[answer.id], answer.timing.centre);
    }
  }
  std::vector<double> all;
  for (const size_t i : place) all.push_back(seconds[i]);
  return all;
}

}  // namespace hone::search
