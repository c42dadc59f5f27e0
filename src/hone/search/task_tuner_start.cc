// What a task's tuner begins with: its space, what the store knows of it, and schedules that are
// good for other tasks.
#include <algorithm>
#include <cmath>
#include <utility>

#include "hone/search/prediction.h"
#include "hone/search/task_tuner.h"

namespace hone::search {
namespace {

constexpr int kStoredBest = 2;        // of earlier runs, measured again
constexpr size_t kTransferred = 6;    // schedules of other tasks, measured before any search ...
constexpr size_t kKnownWell = 16;     // ... unless the task has so many records of its own
constexpr size_t kAdopted = 3;        // schedules of similar tasks, tried at a time
constexpr size_t kMaxLearned = 2000;  // records of earlier runs, for the cost model, the newest

}  // namespace

Status TaskTuner::open(db::TrialStore* store) {
  HONE_ASSIGN_OR_RETURN(space_,
                        space::Space::create(*task_.dag, *context_.target, context_.accuracy));
  if (context_.policy != nullptr) {
    searcher_ = context_.policy->make_searcher(search_task());
  } else {
    HONE_ASSIGN_OR_RETURN(const auto policy, make_policy(kDefaultStrategy));
    searcher_ = policy->make_searcher(search_task());
  }
  HONE_RETURN_IF_ERROR(find_start());
  work_ = least_work(*task_.dag, *space_);
  constant_bytes_ = constant_bytes(*task_.dag);
  const bool forgotten = context_.forgotten && context_.forgotten->contains(task_.key);
  if (store && !forgotten) HONE_RETURN_IF_ERROR(learn(*store));
  suggest(untuned_steps_);
  return ok_status();
}

Status TaskTuner::find_start() {
  untuned_steps_ = task_.start ? *task_.start : space_->steps(space_->default_point());
  HONE_ASSIGN_OR_RETURN(predicted_seconds_,
                        predict_seconds(search_task(), *task_.dag, untuned_steps_));
  return ok_status();
}

void TaskTuner::start_from(const TransferPool& pool) {
  if (learned_ >= kKnownWell) return;
  const TransferResult found =
      transfer(search_task(), *task_.dag, pool, {.device = context_.device});
  offered_ = {found.sources, found.invalid};
  // The best predicted of each algorithm first: between algorithms a model errs most.
  std::vector<const Transferred*> firsts, others;
  std::set<std::string> algorithms;
  for (const Transferred& candidate : found.candidates) {
    if (suggested(candidate.steps)) continue;
    const bool first = algorithms.insert(schedule::algorithm_of(candidate.steps)).second;
    (first ? firsts : others).push_back(&candidate);
  }
  firsts.insert(firsts.end(), others.begin(), others.end());
  if (firsts.size() > kTransferred) firsts.resize(kTransferred);
  for (const Transferred* candidate : firsts) suggest(candidate->steps, candidate->point);
}

Status TaskTuner::learn(db::TrialStore& store) {
  db::BestQuery query{.task = task_.key,
                      .device = context_.device,
                      .threads = context_.threads,
                      .limit = kStoredBest};
  query.accuracy = context_.accuracy;
  HONE_ASSIGN_OR_RETURN(const std::vector<trial::Record> best, store.best(query));
  for (const trial::Record& record : best) {
    Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
    if (!steps.ok()) continue;
    suggest(*steps);
    // Times of another version are on a scale of their own.
    const bool same = record.version == context_.version;
    stored_.emplace_back(*std::move(steps), same ? record.centre : 0);
  }
  db::Filter filter;
  filter.task = task_.key;
  filter.device = context_.device;
  filter.threads = context_.threads;
  filter.version = context_.version;
  filter.limit = context_.most_known;
  filter.newest_first = true;
  HONE_ASSIGN_OR_RETURN(std::vector<trial::Record> records, store.query(filter));
  std::reverse(records.begin(), records.end());
  std::vector<space::Point> points;
  std::vector<double> seconds;
  for (const trial::Record& record : records) {
    const Result<schedule::Steps> steps = schedule::parse_steps(record.steps);
    if (!steps.ok()) continue;
    const std::optional<space::Point> point =
        space::exact_point(space::known_point(record.decisions), *steps, *space_);
    if (!point) continue;
    points.push_back(*point);
    seconds.push_back(record.outcome == trial::Outcome::kOk ? record.centre : INFINITY);
  }
  learned_ = records.size();
  searcher_->observe(points, seconds);
  const size_t old = points.size() - std::min(points.size(), kMaxLearned);
  teach_model(std::span(points).subspan(old), std::span(seconds).subspan(old));
  return ok_status();
}

bool TaskTuner::suggested(const schedule::Steps& steps) const {
  return std::any_of(first_.begin(), first_.end(),
                     [&](const Suggestion& suggestion) { return suggestion.steps == steps; });
}

void TaskTuner::suggest(const schedule::Steps& steps, const std::optional<space::Point>& point) {
  if (tried_.contains(schedule::hash(steps)) || suggested(steps)) return;
  first_.push_back({steps, point});
}

std::optional<Example> TaskTuner::example() const {
  if (finalists_.empty()) return std::nullopt;
  const Candidate& best = finalists_.front().candidate;
  Example example{std::nullopt, best.steps};
  if (best.point) example.point = space::to_portable(*space_, *best.point);
  return example;
}

void TaskTuner::adopt(const Example& example) {
  std::erase_if(adopted_, [&](const Example& other) { return other.steps == example.steps; });
  adopted_.push_back(example);
  if (adopted_.size() > kAdopted) adopted_.erase(adopted_.begin());
}

void TaskTuner::suggest_like(const Example& example) {
  const std::vector<space::Point> points = space::adapt(example.point, example.steps, *space_);
  if (points.empty()) return;
  const std::vector<double> logs = predict_log_seconds(search_task(), points);
  const auto fastest = std::min_element(logs.begin(), logs.end()) - logs.begin();
  const space::Point& best = points[static_cast<size_t>(fastest)];
  suggest(space_->steps(best), best);
}

}  // namespace hone::search
