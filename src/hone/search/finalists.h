// search/finalists.h - the few fastest schedules of a task that were measured in this run and
// compute the right result, fastest first. Behind the fastest ones there may be one more that
// divides the work among threads otherwise and one that reads fewer weights, if none of those
// before does: in the model these may be faster than they are alone.
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
  // `threads` is the number of threads that the kernels run on.
  Finalists(int threads, measure::Weights weights) : threads_(threads), weights_(weights) {}

  void insert(const Candidate& candidate, double seconds);
  // Removes the finalist with this job and returns it; nullopt if there is no such finalist or no
  // other one.
  [[nodiscard]] std::optional<Finalist> remove(uint64_t job_id);
  [[nodiscard]] const std::vector<Finalist>& all() const { return finalists_; }
  [[nodiscard]] std::vector<Finalist> take() { return std::exchange(finalists_, {}); }

  // Returns whether several threads divide its work otherwise than that of the fastest finalist,
  // which is judged by the number of tiles of the last phase.
  [[nodiscard]] bool has_other_split(const Finalist& finalist) const;
  // Returns whether it reads at most half the weights of the fastest finalist, if weights were
  // measured in the cache that all cores share. In the model they may be further away.
  [[nodiscard]] bool has_fewer_weights(const Finalist& finalist) const;

 private:
  int threads_;
  measure::Weights weights_;
  std::vector<Finalist> finalists_;
};

}  // namespace hone::search
