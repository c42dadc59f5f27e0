#include "hone/search/prediction.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "hone/cost/bound_scores.h"
#include "hone/cost/row_model.h"
#include "hone/search/guide.h"
#include "hone/search/in_parts.h"
#include "hone/trial/accuracy.h"

namespace hone::search {
namespace {

// Fills in the logarithms of those that are legal and make sense on so many threads; whether the
// model could say.
bool predict_part(const SearchTask& task, std::span<const space::Point> points,
                  std::span<double> logs) {
  std::vector<space::Candidate> candidates;
  candidates.reserve(points.size());  // queries point into it
  std::vector<cost::Query> queries;
  std::vector<size_t> places;
  for (size_t i = 0; i < points.size(); ++i) {
    if (task.threads <= 1 && task.space->is_for_threads(points[i].sketch)) continue;
    Result<space::Candidate> candidate = task.space->instantiate(points[i]);
    if (!candidate.ok()) continue;
    candidates.push_back(std::move(candidate).value());
    queries.push_back({&candidates.back(), task.target, task.threads, task.key});
    places.push_back(i);
  }
  const Result<std::vector<double>> seconds = task.model->predict(queries);
  for (size_t i = 0; i < places.size(); ++i) {
    logs[places[i]] = seconds.ok() ? std::log(std::max((*seconds)[i], 1e-12)) : 0.0;
  }
  return seconds.ok();
}

// Asks until the model stays the same meanwhile: one that finds out that it cannot judge the task
// answers otherwise from then on.
auto ask_one_model(const SearchTask& task, const auto& ask) {
  for (;;) {
    const uint64_t revision = task.model->revision();
    auto answer = ask();
    if (task.model->revision() == revision) return answer;
  }
}

// Decisions about memory of which the model sees nothing become those of the rule of thumb.
void keep_usual_hints(const SearchTask& task, space::Point& point) {
  const space::Point usual = task.space->default_point(point.sketch);
  const std::vector<space::Decision>& decisions = task.space->decisions(point.sketch);
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].kind != space::DecisionKind::kPacking || point.choices[i] == usual.choices[i])
      continue;
    std::array both = {point, point};
    both[1].choices[i] = usual.choices[i];
    const std::vector<double> logs = predict_log_seconds(task, both);
    if (logs[0] == logs[1] && task.space->legal(both[1])) point = both[1];
  }
}

// The same, with one call of a model that reads rows.
void predict_rows(const SearchTask& task, const cost::RowModel& model,
                  std::span<const space::Point> points, std::span<double> logs) {
  std::vector<std::optional<cost::CandidateFeatures>> made(points.size());
  in_parts(task.pool, points.size(), [&](size_t begin, size_t size) {
    for (size_t i = begin; i < begin + size; ++i) {
      if (task.threads <= 1 && task.space->is_for_threads(points[i].sketch)) continue;
      const Result<space::Candidate> candidate = task.space->instantiate(points[i]);
      if (candidate.ok()) made[i] = model.row({&*candidate, task.target, task.threads, task.key});
    }
  });
  std::vector<cost::CandidateFeatures> rows;
  std::vector<size_t> places;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i]) continue;
    rows.push_back(*std::move(made[i]));
    places.push_back(i);
  }
  const Result<std::vector<double>> seconds = model.predict_rows(task.key, task.threads, rows);
  for (size_t i = 0; i < places.size(); ++i)
    logs[places[i]] = seconds.ok() ? std::log(std::max((*seconds)[i], 1e-12)) : 0.0;
}

std::vector<double> predict_once(const SearchTask& task, std::span<const space::Point> points) {
  std::vector<double> logs(points.size(), INFINITY);
  if (const cost::RowModel* model = cost::as_row_model(*task.model)) {
    predict_rows(task, *model, points, logs);
    return logs;
  }
  std::atomic<bool> known = true;
  in_parts(task.pool, points.size(), [&](size_t begin, size_t size) {
    if (!predict_part(task, points.subspan(begin, size), std::span(logs).subspan(begin, size)))
      known = false;
  });
  if (!known) {
    for (double& log : logs) log = std::isfinite(log) ? 0 : log;
  }
  return logs;
}

}  // namespace

std::vector<double> predict_log_seconds(const SearchTask& task,
                                        std::span<const space::Point> points) {
  return ask_one_model(task, [&] { return predict_once(task, points); });
}

std::vector<std::optional<trial::BoundScores>> predict_bounds(
    const SearchTask& task, std::span<const space::Point> points) {
  std::vector<std::optional<trial::BoundScores>> bounds(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const Result<space::Candidate> candidate = task.space->instantiate(points[i]);
    if (!candidate.ok()) continue;
    const cost::Query query{&*candidate, task.target, task.threads, task.key};
    const trial::BoundScores found = cost::expected_bounds(*task.model, {&query, 1})[0];
    const double both = found.memory + found.core;
    bounds[i] = both > 0 ? trial::BoundScores{found.memory / both, found.core / both}
                         : trial::BoundScores{0, 1};
  }
  return bounds;
}

Result<double> predict_seconds(const SearchTask& task, const compute::Dag& dag,
                               const schedule::Steps& steps) {
  HONE_ASSIGN_OR_RETURN(const space::Candidate candidate, space::make_candidate(dag, steps));
  const cost::Query query{&candidate, task.target, task.threads, task.key};
  HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                        task.model->predict(std::span(&query, 1)));
  return seconds.at(0);
}

namespace {

// Returns the first of the points that beats the start, whose logarithm of seconds is given.
Predicted choose(const SearchTask& task, std::span<const Scored> ranked, const space::Point& start,
                 double start_log, double margin) {
  const cost::DecisionHistory history(*task.space);
  Scored winner = {start, start_log, start_log, 0};
  double to_beat = start_log + std::log1p(-margin);
  // Where blocks are the rule, models do not tell it from other direct schedules
  // (docs/user/cost_models.md, "Decisions that came later").
  const bool blocks = history.has_blocks(start);
  for (const Scored& scored : ranked) {
    if (blocks && !trial::rounds_more(task.space->algorithm(scored.point.sketch))) continue;
    if (scored.log_seconds < to_beat) to_beat = scored.log_seconds, winner = scored;
  }
  keep_usual_hints(task, winner.point);
  return {std::move(winner.point), std::exp(winner.log_seconds), std::exp(start_log)};
}

Predicted best_of_once(const SearchTask& task, std::span<const space::Point> candidates,
                       const space::Point& start, double margin) {
  Guide guide(task);
  guide.keep_usual(cost::DecisionHistory(*task.space));
  const double start_log = predict_log_seconds(task, {&start, 1})[0];
  const std::vector<Scored> ranked = guide.rank({candidates.begin(), candidates.end()});
  return choose(task, ranked, start, start_log, margin);
}

// Where climbing from samples and from the default point ends.
struct Reached {
  std::vector<Scored> points;
  space::Point start;
  double start_log;
};
Reached reach(Guide& guide, const BestPredictedOptions& options) {
  const SearchTask& task = guide.task();
  // The first sketch that makes sense on so many threads.
  const std::vector<space::Point> defaults = task.space->default_points();
  const std::vector<double> logs = predict_log_seconds(task, defaults);
  const auto first = static_cast<size_t>(
      std::find_if(logs.begin(), logs.end(), [](double log) { return std::isfinite(log); }) -
      logs.begin());
  const size_t chosen = first < logs.size() ? first : 0;
  Reached reached{{}, defaults[chosen], logs[chosen]};
  reached.points = guide.climbed_samples(options.samples, options.climbers, options.max_climb);
  if (std::isfinite(reached.start_log))
    reached.points.push_back(
        guide.climb({reached.start, reached.start_log, reached.start_log, 0}, options.max_climb));
  return reached;
}

Predicted best_predicted_once(const SearchTask& task, const BestPredictedOptions& options) {
  Guide guide(task);
  guide.keep_usual(cost::DecisionHistory(*task.space));
  const Reached reached = reach(guide, options);
  return choose(task, reached.points, reached.start, reached.start_log, options.margin);
}

std::vector<Predicted> best_few_once(const SearchTask& task, size_t others,
                                     const BestPredictedOptions& options) {
  Guide guide(task);
  const cost::DecisionHistory history(*task.space);
  guide.keep_usual(history);
  Reached reached = reach(guide, options);
  std::vector<Predicted> few = {
      choose(task, reached.points, reached.start, reached.start_log, options.margin)};
  std::vector<Scored> more = std::move(reached.points);
  if (std::isfinite(reached.start_log))
    more.push_back({reached.start, reached.start_log, reached.start_log, 0});
  for (Scored& near : guide.rank(task.space->neighbours(few[0].point)))
    more.push_back(std::move(near));
  const bool blocks = history.has_blocks(reached.start);
  for (Scored& scored : more) {
    if (few.size() > others) break;
    const bool direct = !trial::rounds_more(task.space->algorithm(scored.point.sketch));
    if (blocks && direct && scored.point != reached.start) continue;
    keep_usual_hints(task, scored.point);
    const bool known = std::any_of(few.begin(), few.end(), [&](const Predicted& other) {
      return other.point == scored.point;
    });
    if (known) continue;
    few.push_back(
        {std::move(scored.point), std::exp(scored.log_seconds), std::exp(reached.start_log)});
  }
  return few;
}

}  // namespace

Predicted best_of(const SearchTask& task, std::span<const space::Point> candidates,
                  const space::Point& start, double margin) {
  return ask_one_model(task, [&] { return best_of_once(task, candidates, start, margin); });
}

Predicted best_predicted(const SearchTask& task, const BestPredictedOptions& options) {
  return ask_one_model(task, [&] { return best_predicted_once(task, options); });
}

std::vector<Predicted> best_few_predicted(const SearchTask& task, size_t others,
                                          const BestPredictedOptions& options) {
  return ask_one_model(task, [&] { return best_few_once(task, others, options); });
}

}  // namespace hone::search
