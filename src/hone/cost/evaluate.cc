#include "hone/cost/evaluate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hone/cost/metrics.h"

namespace hone::cost {
namespace {

constexpr int kFolds = 5;
constexpr std::pair<std::string_view, Split> kSplits[] = {{"none", Split::kNone},
                                                          {"by-model", Split::kByModel},
                                                          {"by-task", Split::kByTask},
                                                          {"within", Split::kWithin}};

std::vector<double> speeds(const std::vector<double>& seconds) {
  const double best = *std::min_element(seconds.begin(), seconds.end());
  std::vector<double> shares;
  for (const double s : seconds) shares.push_back(best / s);
  return shares;
}

// Sums of what Score has means of, by kernel class.
using Sums = std::map<std::string, Score>;

void add(const Score& one, Score& sum) {
  sum.tasks += one.tasks;
  sum.trials += one.trials;
  sum.pair_accuracy += one.pair_accuracy;
  sum.clear_pair_accuracy += one.clear_pair_accuracy;
  sum.top1 += one.top1;
  sum.top5 += one.top5;
  sum.r_squared += one.r_squared;
}

Status judge(const Dataset& dataset, const target::Target& target, const CostModel& model,
             Sums& sums) {
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
    score.r_squared = r_squared(speeds(measured), speeds(predicted));
    add(score, sums[task.kernel_class]);
  }
  return ok_status();
}

Score mean(Score sum, std::string name) {
  sum.kernel_class = std::move(name);
  for (double* value :
       {&sum.pair_accuracy, &sum.clear_pair_accuracy, &sum.top1, &sum.top5, &sum.r_squared})
    *value /= std::max(sum.tasks, 1);
  return sum;
}

Evaluation means(const Sums& sums) {
  Evaluation evaluation;
  Score all;
  for (const auto& [name, sum] : sums) {
    add(sum, all);
    evaluation.classes.push_back(mean(sum, name));
  }
  evaluation.all = mean(all, "all");
  return evaluation;
}

struct Fold {
  Dataset train, test;
};

std::vector<Fold> make_folds(const Dataset& dataset, Split split) {
  std::vector<Fold> folds;
  if (split == Split::kByModel) {
    for (const std::string& name : dataset.models()) {
      Fold fold{without_models(dataset, {name}), {}};
      for (const TaskTrials& task : dataset.tasks) {
        if (task.models.contains(name)) fold.test.tasks.push_back(task);
      }
      folds.push_back(std::move(fold));
    }
    return folds;
  }
  folds.resize(kFolds);
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
                            const CostModel& model) {
  Sums sums;
  HONE_RETURN_IF_ERROR(judge(dataset, target, model, sums));
  return means(sums);
}

Result<Split> parse_split(std::string_view name) {
  for (const auto& [text, split] : kSplits) {
    if (text == name) return split;
  }
  return invalid("unknown split '{}', expected one of {}", name, fmt::join(split_names(), ", "));
}

std::vector<std::string> split_names() {
  std::vector<std::string> names;
  for (const auto& [text, split] : kSplits) names.emplace_back(text);
  return names;
}

Result<Evaluation> cross_evaluate(const Dataset& dataset, const target::Target& target, Split split,
                                  const Trainer& train) {
  Sums sums;
  if (split == Split::kNone) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<CostModel> model, train(Dataset()));
    HONE_RETURN_IF_ERROR(judge(dataset, target, *model, sums));
    return means(sums);
  }
  for (const Fold& fold : make_folds(dataset, split)) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<CostModel> model, train(fold.train));
    HONE_RETURN_IF_ERROR(judge(fold.test, target, *model, sums));
  }
  return means(sums);
}

}  // namespace hone::cost
