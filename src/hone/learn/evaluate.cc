#include "hone/learn/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/cost/bound_scores.h"

namespace hone::learn {
namespace {

constexpr double kLeastSeconds = 1e-12;  // a prediction of 0 is as wrong as this

// Sums for the means in Score.
struct ScoreSum : Score {
  Determination seconds, log_seconds;
};

struct Sums {
  std::map<std::string, ScoreSum> classes;
  std::map<std::pair<std::string, int>, NetworkScore> networks;  // by name and threads
};

struct BoundsSums {
  Determination memory, core;
  double memory_error = 0, core_error = 0;
  int64_t schedules = 0, counted = 0;
  bool by_model = false;

  void add(const trial::BoundScores& actual, const trial::BoundScores& predicted) {
    memory.add(actual.memory, predicted.memory), core.add(actual.core, predicted.core);
    memory_error += std::abs(actual.memory - predicted.memory);
    core_error += std::abs(actual.core - predicted.core);
    ++schedules;
  }
  [[nodiscard]] std::optional<BoundsScore> score() const {
    if (schedules == 0 || (!by_model && counted == 0)) return std::nullopt;
    const auto count = static_cast<double>(schedules);
    return BoundsScore{.predicted_by = by_model ? "model" : "static analysis",
                       .judged_by = std::string(cost::bounds_source(counted, schedules)),
                       .schedules = schedules,
                       .memory_error = memory_error / count,
                       .core_error = core_error / count,
                       .memory_r_squared = memory.r_squared(),
                       .core_r_squared = core.r_squared()};
  }
};

// The sums of all schedules, and of each draw of fewer ones.
struct AllSums {
  Sums all;
  std::map<int, std::vector<Sums>> fewer;  // draws, by the number of schedules
  size_t most = 0;                         // schedules that a task has
  int not_judged = 0;                      // tasks of too few schedules
  int refused = 0;                         // tasks that the model cannot judge
  Status why_refused = ok_status();        // the first of them, which it names
  BoundsSums bounds;

  explicit AllSums(std::span<const int> schedules) {
    for (const int count : schedules) fewer[count].resize(kDraws);
  }
};

// The tasks that are judged, and the networks.
struct Judged {
  const Dataset& dataset;
  const target::Target& target;
  const std::set<std::string>& names;
  const Judging& how;
};

void add(const ScoreSum& one, ScoreSum& sum) {
  sum.tasks += one.tasks;
  sum.trials += one.trials;
  sum.pair_accuracy += one.pair_accuracy;
  sum.clear_pair_accuracy += one.clear_pair_accuracy;
  sum.top1 += one.top1;
  sum.top5 += one.top5;
  sum.peak5 += one.peak5;
  sum.sum10 += one.sum10, sum.sum10_tasks += one.sum10_tasks;
  sum.sum50 += one.sum50, sum.sum50_tasks += one.sum50_tasks;
  sum.r_squared += one.r_squared;
  sum.rmse += one.rmse;
  sum.seconds.add(one.seconds);
  sum.log_seconds.add(one.log_seconds);
}

// Returns how often a network has the task.
int multiplicity(const TaskTrials& task, const std::string& network, const Networks& networks) {
  const auto listed = networks.find(network);
  if (listed == networks.end()) return task.models.contains(network) ? 1 : 0;
  const auto found = listed->second.find(task.key);
  return found == listed->second.end() ? 0 : found->second;
}

void add_to_networks(const TaskTrials& task, const Score& score, double best, const Judged& judged,
                     Sums& sums) {
  for (const std::string& network : judged.names) {
    const int times = multiplicity(task, network, judged.how.networks);
    if (times == 0) continue;
    NetworkScore& sum = sums.networks[{network, task.threads}];
    const auto listed = judged.how.networks.find(network);
    if (listed != judged.how.networks.end()) sum.listed = static_cast<int>(listed->second.size());
    sum.tasks += 1;
    sum.best_seconds += times * best;
    sum.top1_seconds += times * best / score.top1;
    sum.top5_seconds += times * best / score.top5;
  }
}

void add_task(const TaskTrials& task, const std::vector<double>& measured,
              const std::vector<double>& predicted, const Judged& judged, Sums& sums) {
  ScoreSum score;
  score.tasks = 1;
  score.trials = std::ssize(measured);
  score.pair_accuracy = pair_accuracy(measured, predicted);
  score.clear_pair_accuracy = pair_accuracy(measured, predicted, kClearRatio);
  score.top1 = top_score(measured, predicted, 1);
  score.top5 = top_score(measured, predicted, 5);
  score.peak5 = peak_score(measured, predicted, 5);
  const auto add_sum = [&](int k, double& mean, int& tasks) {
    if (score.trials > k) mean = sum_score(measured, predicted, k), tasks = 1;
  };
  add_sum(10, score.sum10, score.sum10_tasks);
  add_sum(50, score.sum50, score.sum50_tasks);
  score.r_squared = r_squared(speeds(measured), speeds(predicted));
  score.rmse =
      squared_error(speeds(measured), speeds(predicted)) * static_cast<double>(score.trials);
  for (size_t i = 0; i < measured.size(); ++i) {
    score.seconds.add(measured[i], predicted[i]);
    score.log_seconds.add(std::log(measured[i]), std::log(std::max(predicted[i], kLeastSeconds)));
  }
  add(score, sums.classes[task.kernel_class]);
  add_to_networks(task, score, *std::min_element(measured.begin(), measured.end()), judged, sums);
}

// The order in which a task's schedules are drawn: it depends on what they are alone.
std::vector<size_t> drawn_order(const TaskTrials& task, int draw) {
  std::vector<std::pair<uint64_t, size_t>> keys;
  const uint64_t seed = hash_combine(task.key, static_cast<uint64_t>(draw));
  for (size_t i = 0; i < task.trials.size(); ++i)
    keys.emplace_back(hash_combine(seed, schedule::hash(task.trials[i].steps)), i);
  std::sort(keys.begin(), keys.end());
  std::vector<size_t> order;
  order.reserve(keys.size());
  for (const auto& [key, place] : keys) order.push_back(place);
  return order;
}

void add_fewer(const TaskTrials& task, const std::vector<double>& measured,
               const std::vector<double>& predicted, const Judged& judged, AllSums& sums) {
  if (sums.fewer.empty() || std::cmp_less(measured.size(), sums.fewer.rbegin()->first)) return;
  for (size_t draw = 0; draw < kDraws; ++draw) {
    const std::vector<size_t> order = drawn_order(task, static_cast<int>(draw));
    for (auto& [count, draws] : sums.fewer) {
      std::vector<double> some_measured, some_predicted;
      for (size_t i = 0; std::cmp_less(i, count); ++i) {
        some_measured.push_back(measured[order[i]]);
        some_predicted.push_back(predicted[order[i]]);
      }
      add_task(task, some_measured, some_predicted, judged, draws[draw]);
    }
  }
}

// Judges what the model says of memory and arithmetic. The static analysis, where the model says
// nothing, is judged by schedules with counters alone.
Status add_bounds(const cost::CostModel& model, const TaskTrials& task,
                  std::span<const cost::Query> queries, BoundsSums& sums) {
  HONE_ASSIGN_OR_RETURN(const auto predicted, cost::predicted_bounds(model, queries));
  sums.by_model |= predicted.has_value();
  for (size_t i = 0; i < queries.size(); ++i) {
    const std::optional<trial::BoundScores>& counted = task.trials[i].counted;
    if (!predicted && !counted) continue;
    sums.counted += counted.has_value();
    sums.add(cost::bound_scores(queries[i], counted),
             predicted ? (*predicted)[i] : cost::static_bounds(queries[i]));
  }
  return ok_status();
}

Status judge(const cost::CostModel& model, const Judged& judged, AllSums& sums) {
  for (const TaskTrials& task : judged.dataset.tasks) {
    sums.most = std::max(sums.most, task.trials.size());
    if (std::ssize(task.trials) < kMinTrialsToJudge) {
      ++sums.not_judged;
      continue;
    }
    std::vector<space::Candidate> candidates;
    candidates.reserve(task.trials.size());  // queries point into it
    std::vector<cost::Query> queries;
    std::vector<double> measured;
    for (const MeasuredSteps& trial : task.trials) {
      HONE_ASSIGN_OR_RETURN(space::Candidate candidate,
                            space::make_candidate(*task.dag, trial.steps));
      candidates.push_back(std::move(candidate));
      queries.push_back({&candidates.back(), &judged.target, task.threads, task.key});
      measured.push_back(trial.seconds);
    }
    const Result<std::vector<double>> predictions = model.predict(queries);
    if (predictions.status().code() == Code::kUnsupported) {
      if (sums.refused++ == 0)
        sums.why_refused =
            error(Code::kUnsupported, "{}: {}", task.kernel_class, predictions.status().message());
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> predicted, predictions);
    HONE_RETURN_IF_ERROR(add_bounds(model, task, queries, sums.bounds));
    add_task(task, measured, predicted, judged, sums.all);
    add_fewer(task, measured, predicted, judged, sums);
    if (!judged.how.on_task) continue;
    TaskPrediction told{task.key, task.kernel_class,   task.threads, task.models,
                        {},       std::move(measured), predicted};
    for (const MeasuredSteps& trial : task.trials)
      told.schedules.push_back(schedule::hash(trial.steps));
    judged.how.on_task(told);
  }
  return ok_status();
}

ScoreSum mean(ScoreSum sum, std::string name) {
  sum.kernel_class = std::move(name);
  for (double* value : {&sum.pair_accuracy, &sum.clear_pair_accuracy, &sum.top1, &sum.top5,
                        &sum.peak5, &sum.r_squared})
    *value /= std::max(sum.tasks, 1);
  sum.sum10 /= std::max(sum.sum10_tasks, 1);
  sum.sum50 /= std::max(sum.sum50_tasks, 1);
  sum.rmse = std::sqrt(sum.rmse / static_cast<double>(std::max<int64_t>(sum.trials, 1)));
  sum.r_squared_seconds = sum.seconds.r_squared();
  sum.r_squared_log_seconds = sum.log_seconds.r_squared();
  return sum;
}

ScoreSum mean_of_all(const Sums& sums) {
  ScoreSum all;
  for (const auto& [name, sum] : sums.classes) add(sum, all);
  return mean(all, "all");
}

Evaluation means_of(const Sums& sums) {
  Evaluation evaluation;
  for (const auto& [name, sum] : sums.classes) evaluation.classes.push_back(mean(sum, name));
  for (const auto& [which, sum] : sums.networks) {
    evaluation.networks.push_back(sum);
    evaluation.networks.back().network = which.first;
    evaluation.networks.back().threads = which.second;
  }
  evaluation.all = mean_of_all(sums);
  return evaluation;
}

// Means over the draws.
ScheduleCountScore mean_of_draws(int schedules, const std::vector<Sums>& draws) {
  ScheduleCountScore result{.schedules = schedules};
  ScoreSum sum;
  for (const Sums& draw : draws) {
    ScoreSum one = mean_of_all(draw);
    // add() sums what mean() divides by the number of tasks: each draw counts as one.
    result.score.trials = one.trials;
    result.score.tasks = std::exchange(one.tasks, 1);
    one.rmse *= one.rmse * static_cast<double>(one.trials);
    one.sum10_tasks = one.sum10_tasks > 0 ? 1 : 0;
    one.sum50_tasks = one.sum50_tasks > 0 ? 1 : 0;
    add(one, sum);
    const auto networks = static_cast<double>(draw.networks.size());
    for (const auto& [which, network] : draw.networks) {
      result.network_top1 += network.top1() / networks / kDraws;
      result.network_top5 += network.top5() / networks / kDraws;
    }
  }
  sum = mean(sum, "all");
  sum.tasks = result.score.tasks;
  sum.trials = result.score.trials;
  result.score = sum;
  return result;
}

Result<Evaluation> means(const AllSums& sums) {
  Evaluation evaluation = means_of(sums.all);
  evaluation.not_judged = sums.not_judged;
  evaluation.bounds = sums.bounds.score();
  evaluation.refused = sums.refused;
  if (evaluation.all.tasks == 0 && sums.refused > 0) return sums.why_refused;
  if (sums.refused > 0)
    log_warning("{} tasks that the model cannot judge are left out: {}", sums.refused,
                sums.why_refused.message());
  if (evaluation.all.tasks == 0) {
    return invalid("no task has {} measured schedules to judge by, but {} at most",
                   kMinTrialsToJudge, sums.most);
  }
  for (const auto& [count, draws] : sums.fewer) {
    evaluation.by_schedules.push_back(mean_of_draws(count, draws));
    if (evaluation.by_schedules.back().score.tasks == 0) {
      return invalid("no task has {} schedules to judge by, but {} at most",
                     sums.fewer.rbegin()->first, sums.most);
    }
  }
  return evaluation;
}

// Those that are listed, or all that the data set has tasks of.
std::set<std::string> judged_networks(const Dataset& dataset, const Networks& networks) {
  if (networks.empty()) return dataset.models();
  std::set<std::string> names;
  for (const auto& [name, tasks] : networks) names.insert(name);
  return names;
}

}  // namespace

Result<Evaluation> evaluate(const Dataset& dataset, const target::Target& target,
                            const cost::CostModel& model, const Judging& judging) {
  AllSums sums(judging.schedules);
  const std::set<std::string> names = judged_networks(dataset, judging.networks);
  HONE_RETURN_IF_ERROR(judge(model, {dataset, target, names, judging}, sums));
  return means(sums);
}

Result<Evaluation> cross_evaluate(const Dataset& dataset, const target::Target& target, Split split,
                                  const Trainer& train, const Judging& judging) {
  if (split == Split::kNone) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, train(Dataset()));
    return evaluate(dataset, target, *model, judging);
  }
  AllSums sums(judging.schedules);
  const std::set<std::string> judged = judged_networks(dataset, judging.networks);
  for (const Fold& fold : make_folds(dataset, split)) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost::CostModel> model, train(fold.train));
    std::set<std::string> names = judged;
    // Tasks that other networks share with this one are held out, too, but not all tasks of those
    // networks.
    if (split == Split::kByModel)
      std::erase_if(names, [&](const std::string& name) { return name != fold.network; });
    HONE_RETURN_IF_ERROR(judge(*model, {fold.test, target, names, judging}, sums));
  }
  return means(sums);
}

}  // namespace hone::learn
