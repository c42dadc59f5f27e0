// search/candidate_source.h - the source of a task's candidates: first the schedules that were
// suggested for it (its stored best, the schedule to be beaten, schedules of other tasks), then the
// points that correspond to the best schedules of similar tasks of the run, then the searcher's
// proposals. No steps are proposed twice.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "hone/search/candidate.h"
#include "hone/search/searcher.h"
#include "hone/search/transfer.h"
#include "hone/space/portable_point.h"

namespace hone::search {

// The best schedule of a task, for others like it.
struct Example {
  std::optional<space::PortablePoint> point;  // none: steps from elsewhere
  schedule::Steps steps;
};

class CandidateSource {
 public:
  CandidateSource(const SearchTask& task, std::unique_ptr<Searcher> searcher)
      : task_(task), searcher_(std::move(searcher)) {}

  // Suggests steps to be tried soon, as they are. `point` is their point of the space, if it is
  // known.
  void suggest(const schedule::Steps& steps, const std::optional<space::Point>& point = {});
  // Suggests a few of these, the best predicted of each algorithm first.
  void suggest_transferred(std::span<const Transferred> transferred);
  // Takes the best schedule of a similar task. Of the points of this space that correspond to it,
  // the next propose() suggests the one that is predicted fastest. Only the last few examples
  // count.
  void add_example(const Example& example);

  // Proposes at most n candidates, those that `accept` takes. `accept` may call observe() for the
  // others.
  using Accept = std::function<bool(Candidate&)>;
  [[nodiscard]] std::vector<Candidate> propose(int n, const Accept& accept);
  // Returns whether the last propose() found no steps that were not proposed before.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  // Tells the searcher the measured times, of this or an earlier run; infinity for a candidate that
  // failed.
  void observe(std::span<const space::Point> points, std::span<const double> seconds) {
    searcher_->observe(points, seconds);
  }

 private:
  struct Suggestion {
    schedule::Steps steps;
    std::optional<space::Point> point;  // none: not looked for yet
  };
  [[nodiscard]] bool is_suggested(const schedule::Steps& steps) const;
  void suggest_like(const Example& example);

  SearchTask task_;
  std::unique_ptr<Searcher> searcher_;
  std::vector<Suggestion> suggestions_;  // to be proposed before the searcher's, in order
  std::vector<Example> examples_;        // best schedules of similar tasks, the latest last
  std::unordered_set<uint64_t> tried_;   // hashes of steps that were proposed
  bool exhausted_ = false;
};

}  // namespace hone::search
