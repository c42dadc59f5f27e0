#include "hone/cost/evaluate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/base/named.h"
#include "hone/cost/metrics.h"

namespace hone::cost {
namespace {

constexpr int kFolds = 5;
constexpr Named<Split> kSplits[] = {{"none", Split::kNone},
                                    {"by-model", Split::kByModel},
                                    {"by-task", Split::kByTask},
                                    {"within", Split::kWithin}};

std::vector<double> speeds(const std::vector<double>& seconds) {
  const double best = *std::min_element(seconds.begin(), seconds.end());
  std::vector<double> shares;
  for (const double s : seconds) shares.push_back(best / s);
  return shares;
}

struct Sums {
  std::map<std::string, Score> classes;  // of what Score has means of
  std::map<std::string, NetworkScore> networks;
};

void add(const Score& one, Score& sum) {
  sum.tasks += one.tasks;
  sum.trials += one.trials;
  sum.pair_accuracy += one.pair_accuracy;
  sum.clear_pair_accuracy += one.clear_pair_accuracy;
  sum.top1 += one.top1;
  sum.top5 += one.top5;
  sum.peak5 += one.peak5;
  sum.r_squared += one.r_squared;
  sum.rmse += one.rmse;
}

// How often a network has the task.
int multiplicity(const TaskTrials& task, const std::string& network, const Networks& networks) {
  const auto listed = networks.find(network);
  if (listed == networks.end()) return task.models.contains(network) ? 1 : 0;
  const auto found = listed->second.find(task.key);
  return found == listed->second.end() ? 0 : found->second;
}

void add_to_networks(const TaskTrials& task, const Score& score, double best,
                     const std::set<std::string>& judged, const Networks& networks, Sums& sums) {
  for (const std::string& network : judged) {
    const int times = multiplicity(task, network, networks);
    if (times == 0) continue;
    NetworkScore& sum = sums.networks[network];
    sum.tasks += 1;
    sum.best_seconds += times * best;
    sum.top1_seconds += times * best / score.top1;
    sum.top5_seconds += times * best / score.top5;
  }
}

// `judged`: the networks that the model is judged on.
Status judge(const Dataset& dataset, const target::Target& target, const CostModel& model,
             const std::set<std::string>& judged, const Networks& networks, Sums& sums) {
  for (const TaskTrials& task : dataset.tasks) {
    if (std::ssize(task.trials) < kMinTrialsToJudge) continue;
    std::vector<space::Candidate> candidates;
    candidates.reserve(task.trials.size());  // queries point into it
    std::vector<Query> queries;
    std::vector<double> measured;
    for (const MeasuredSteps& trial : task.trials) {
      HONE_ASSIGN_OR_RETURN(space::Candidate candidate,
                            space::make_candidate(*task.dag, trial.steps));
      candidates.push_back(std::move(candidate));
      queries.push_back({&candidates.back(), &target, task.threads, task.key});
      measured.push_back(trial.seconds);
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<double> predicted, model.predict(queries));
    Score score;
    score.tasks = 1;
    score.trials = std::ssize(measured);
    score.pair_accuracy = pair_accuracy(measured, predicted);
    score.clear_pair_accuracy = pair_accuracy(measured, predicted, kClearRatio);
    score.top1 = top_score(measured, predicted, 1);
    score.top5 = top_score(measured, predicted, 5);
    score.peak5 = peak_score(measured, predicted, 5);
    score.r_squared = r_squared(speeds(measured), speeds(predicted));
    score.rmse =
        squared_error(speeds(measured), speeds(predicted)) * static_cast<double>(score.trials);
    add(score, sums.classes[task.kernel_class]);
    add_to_networks(task, score, *std::min_element(measured.begin(), measured.end()), judged,
                    networks, sums);
  }
  return ok_status();
}

Score mean(Score sum, std::string name) {
  sum.kernel_class = std::move(name);
  for (double* value : {&sum.pair_accuracy, &sum.clear_pair_accuracy, &sum.top1, &sum.top5,
                        &sum.peak5, &sum.r_squared})
    *value /= std::max(sum.tasks, 1);
  sum.rmse = std::sqrt(sum.rmse / static_cast<double>(std::max<int64_t>(sum.trials, 1)));
  return sum;
}

Evaluation means(const Sums& sums) {
  Evaluation evaluation;
  Score all;
  for (const auto& [name, sum] : sums.classes) {
    add(sum, all);
    evaluation.classes.push_back(mean(sum, name));
  }
  for (const auto& [name, sum] : sums.networks) {
    evaluation.networks.push_back(sum);
    evaluation.networks.back().network = name;
  }
  evaluation.all = mean(all, "all");
  return evaluation;
}

struct Fold {
  Dataset train, test;
  std::set<std::string> judged;  // networks
};

// Those that are listed, or all that the data set has tasks of.
std::set<std::string> judged_networks(const Dataset& dataset, const Networks& networks) {
  if (networks.empty()) return dataset.models();
  std::set<std::string> names;
  for (const auto& [name, tasks] : networks) names.insert(name);
  return names;
}

std::vector<Fold> make_folds(const Dataset& dataset, Split split, const Networks& networks) {
  std::vector<Fold> folds;
  const std::set<std::string> judged = judged_networks(dataset, networks);
  if (split == Split::kByModel) {
    for (const std::string& name : dataset.models()) {
      // What other networks share with it was held out, too, but not all that they have.
      Fold fold{without_models(dataset, {name}), {}, {}};
      if (judged.contains(name)) fold.judged = {name};
      for (const TaskTrials& task : dataset.tasks) {
        if (task.models.contains(name)) fold.test.tasks.push_back(task);
      }
      folds.push_back(std::move(fold));
    }
    return folds;
  }
  folds.resize(kFolds, {{}, {}, judged});
  for (size_t t = 0; t < dataset.tasks.size(); ++t) {
    const TaskTrials& task = dataset.tasks[t];
    for (size_t f = 0; f < kFolds; ++f) {
      if (split == Split::kByTask) {
        (task.key % kFolds == f ? folds[f].test : folds[f].train).tasks.push_back(task);
        continue;
      }
      TaskTrials train = task, test = task;
      train.trials.clear();
      test.trials.clear();
      for (size_t i = 0; i < task.trials.size(); ++i)
        (i % kFolds == f ? test : train).trials.push_back(task.trials[i]);
      folds[f].train.tasks.push_back(std::move(train));
      folds[f].test.tasks.push_back(std::move(test));
    }
  }
  return folds;
}

}  // namespace

Result<Evaluation> evaluate(const Dataset& dataset, const target::Target& target,
                            const CostModel& model, const Networks& networks) {
  Sums sums;
  HONE_RETURN_IF_ERROR(
      judge(dataset, target, model, judged_networks(dataset, networks), networks, sums));
  return means(sums);
}

Result<Split> parse_split(std::string_view name) {
  if (const std::optional<Split> split = find_named(kSplits, name)) return *split;
  return invalid("unknown split '{}', expected one of {}", name, fmt::join(split_names(), ", "));
}

std::vector<std::string> split_names() { return names_of(kSplits); }

Result<Evaluation> cross_evaluate(const Dataset& dataset, const target::Target& target, Split split,
                                  const Trainer& train, const Networks& networks) {
  if (split == Split::kNone) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<CostModel> model, train(Dataset()));
    return evaluate(dataset, target, *model, networks);
  }
  Sums sums;
  for (const Fold& fold : make_folds(dataset, split, networks)) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<CostModel> model, train(fold.train));
    HONE_RETURN_IF_ERROR(judge(fold.test, target, *model, fold.judged, networks, sums));
  }
  return means(sums);
}

}  // namespace hone::cost
