// search/finalists.h - the few fastest schedules of a task that were measured in this run and
// compute the right result, fastest first. Behind the fastest ones there may be one more that gives
// other parts to the threads and one with fewer weights, if none of those before is such a one: in
// the model these may be faster than they are alone.
#pragma once

#include <optional>
#include <vector>

#include "hone/search/candidate.h"

namespace hone::search {

struct Finalist {
  Candidate candidate;
  double seconds = 0;  // on the task's scale (search/incumbent.h)
};

class Finalists {
 public:
  // `threads`: that the kernels run on.
  Finalists(int threads, measure::Weights weights) : threads_(threads), weights_(weights) {}

  void insert(const Candidate& candidate, double seconds);
  // The one with this job, which is none any more; nullopt if there is no such one or no other.
  [[nodiscard]] std::optional<Finalist> remove(uint64_t job_id);
  [[nodiscard]] const std::vector<Finalist>& all() const { return finalists_; }
  [[nodiscard]] std::vector<Finalist> take() { return std::exchange(finalists_, {}); }

  // Whether several threads run other parts of it than of the fastest finalist: by its number of
  // tiles, that of the last phase.
  [[nodiscard]] bool has_other_split(const Finalist& finalist) const;
  // Whether it reads at most half the weights of the fastest finalist, where these were measured in
  // the cache that all cores share: in the model they may be further away.
  [[nodiscard]] bool has_fewer_weights(const Finalist& finalist) const;

 private:
  int threads_;
  measure::Weights weights_;
  std::vector<Finalist> finalists_;
};

}  // namespace hone::search
