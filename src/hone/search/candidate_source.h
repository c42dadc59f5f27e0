// search/candidate_source.h - where the candidates of a task come from: what was suggested for it
// (its stored best, the schedule to be beaten, schedules of other tasks) in that order, then what
// the best of similar tasks of the run correspond to, then what the searcher proposes. No steps are
// proposed twice.
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

  // Steps to try soon, as they are; `point` if it is known which one they are.
  void suggest(const schedule::Steps& steps, const std::optional<space::Point>& point = {});
  // Suggests a few of these, the best predicted of each algorithm first.
  void suggest_transferred(std::span<const Transferred> transferred);
  // The best of a similar task: of the points of this space that correspond to it, the one that is
  // predicted best is suggested by the next propose(). Only the last few count.
  void adopt(const Example& example);

  // At most n candidates that `accept` takes; it may tell this source what it knows of the others.
  using Accept = std::function<bool(Candidate&)>;
  [[nodiscard]] std::vector<Candidate> propose(int n, const Accept& accept);
  // The last propose() found no steps that were not proposed before.
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  // What was measured, here or in an earlier run; infinity for a candidate that failed.
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
  std::vector<Example> adopted_;         // of similar tasks, the latest last
  std::unordered_set<uint64_t> tried_;   // hashes of steps that were proposed
  bool exhausted_ = false;
};

}  // namespace hone::search
