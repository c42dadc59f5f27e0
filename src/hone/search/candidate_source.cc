#include "hone/search/candidate_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "hone/search/prediction.h"

namespace hone::search {
namespace {

constexpr size_t kTransferred = 6;  // schedules of other tasks that are suggested at most
constexpr size_t kExamples = 3;     // schedules of similar tasks that are suggested at a time
constexpr int kRounds = 6;          // questions to the searcher for one batch

}  // namespace

bool CandidateSource::is_suggested(const schedule::Steps& steps) const {
  return std::any_of(suggestions_.begin(), suggestions_.end(),
                     [&](const Suggestion& suggestion) { return suggestion.steps == steps; });
}

void CandidateSource::suggest(const schedule::Steps& steps,
                              const std::optional<space::Point>& point) {
  if (tried_.contains(schedule::hash(steps)) || is_suggested(steps)) return;
  suggestions_.push_back({steps, point});
}

// Between algorithms a cost model errs most, so each gets its turn.
void CandidateSource::suggest_transferred(std::span<const Transferred> transferred) {
  std::vector<const Transferred*> firsts, others;
  std::set<std::string> algorithms;
  for (const Transferred& candidate : transferred) {
    if (is_suggested(candidate.steps)) continue;
    const bool first = algorithms.insert(schedule::algorithm_of(candidate.steps)).second;
    (first ? firsts : others).push_back(&candidate);
  }
  firsts.insert(firsts.end(), others.begin(), others.end());
  if (firsts.size() > kTransferred) firsts.resize(kTransferred);
  for (const Transferred* candidate : firsts) suggest(candidate->steps, candidate->point);
}

void CandidateSource::add_example(const Example& example) {
  std::erase_if(examples_, [&](const Example& other) { return other.steps == example.steps; });
  examples_.push_back(example);
  if (examples_.size() > kExamples) examples_.erase(examples_.begin());
}

void CandidateSource::suggest_like(const Example& example) {
  const std::vector<space::Point> points = space::adapt(example.point, example.steps, *task_.space);
  if (points.empty()) return;
  const std::vector<double> logs = predict_log_seconds(task_, points);
  const auto fastest = std::min_element(logs.begin(), logs.end()) - logs.begin();
  const space::Point& best = points[static_cast<size_t>(fastest)];
  suggest(task_.space->steps(best), best);
}

std::vector<Candidate> CandidateSource::propose(int n, const Accept& accept) {
  std::vector<Candidate> candidates;
  exhausted_ = true;
  const auto add = [&](std::optional<space::Point> point, schedule::Steps steps) {
    if (!tried_.insert(schedule::hash(steps)).second) return;
    exhausted_ = false;
    Candidate candidate{.point = std::move(point), .steps = std::move(steps)};
    if (accept(candidate)) candidates.push_back(std::move(candidate));
  };
  for (const Example& example : std::exchange(examples_, {})) suggest_like(example);
  while (!suggestions_.empty() && static_cast<int>(candidates.size()) < n) {
    Suggestion next = std::move(suggestions_.front());
    suggestions_.erase(suggestions_.begin());
    if (!next.point) next.point = space::exact_point(std::nullopt, next.steps, *task_.space);
    add(std::move(next.point), std::move(next.steps));
  }
  // The searcher may name a point that was suggested or differs from another only in words: it is
  // asked again until the batch is full.
  for (int round = 0; round < kRounds && static_cast<int>(candidates.size()) < n; ++round) {
    const std::vector<space::Point> points =
        searcher_->propose(n - static_cast<int>(candidates.size()));
    if (points.empty()) break;
    for (const space::Point& point : points) add(point, task_.space->steps(point));
  }
  return candidates;
}

}  // namespace hone::search
