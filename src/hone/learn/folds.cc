#include "hone/learn/folds.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hone/base/named.h"
#include "hone/learn/data_split.h"
#include "hone/learn/task_list.h"

namespace hone::learn {
namespace {

constexpr size_t kFolds = 5;
constexpr Named<Split> kSplits[] = {{"none", Split::kNone},
                                    {"by-model", Split::kByModel},
                                    {"by-task", Split::kByTask},
                                    {"within", Split::kWithin}};

std::vector<Fold> folds_by_model(const Dataset& dataset) {
  std::vector<Fold> folds;
  for (const std::string& name : dataset.models()) {
    const std::set<uint64_t> theirs = dataset.keys_of({name});
    folds.push_back({tasks_except(dataset, theirs), tasks_among(dataset, theirs), name});
  }
  return folds;
}

std::vector<Fold> empty_folds(const Dataset& dataset) {
  std::vector<Fold> folds(kFolds);
  for (Fold& fold : folds) fold.train.device = fold.test.device = dataset.device;
  return folds;
}

std::vector<Fold> folds_by_task(const Dataset& dataset) {
  std::vector<Fold> folds = empty_folds(dataset);
  for (const TaskTrials& task : dataset.tasks) {
    for (size_t f = 0; f < kFolds; ++f)
      (task.key % kFolds == f ? folds[f].test : folds[f].train).tasks.push_back(task);
  }
  return folds;
}

// The fold in which each schedule of a task is judged, by the hash of its steps. Groups of near
// duplicates, large ones first, go where the fewest schedules are.
using Places = std::map<uint64_t, size_t>;

Places places_of(std::span<const TaskTrials* const> task) {
  std::map<uint64_t, std::vector<uint64_t>> groups;
  for (const auto& [schedule, group] : duplicate_groups(task)) groups[group].push_back(schedule);
  std::vector<std::vector<uint64_t>> order;
  for (auto& [name, schedules] : groups) order.push_back(std::move(schedules));
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::array<size_t, kFolds> sizes{};
  Places places;
  for (const std::vector<uint64_t>& schedules : order) {
    auto* const fewest = std::min_element(sizes.begin(), sizes.end());
    *fewest += schedules.size();
    for (const uint64_t schedule : schedules)
      places[schedule] = static_cast<size_t>(fewest - sizes.begin());
  }
  return places;
}

std::vector<Fold> folds_within(const Dataset& dataset) {
  std::map<uint64_t, std::vector<const TaskTrials*>> tasks;
  for (const TaskTrials& task : dataset.tasks) tasks[task.key].push_back(&task);
  std::map<uint64_t, Places> places;
  for (const auto& [key, all] : tasks) places[key] = places_of(all);
  std::vector<Fold> folds = empty_folds(dataset);
  for (const TaskTrials& task : dataset.tasks) {
    const Places& place = places.at(task.key);
    for (size_t f = 0; f < kFolds; ++f) {
      TaskTrials train = task, test = task;
      std::erase_if(train.trials,
                    [&](const auto& trial) { return place.at(schedule::hash(trial.steps)) == f; });
      std::erase_if(test.trials,
                    [&](const auto& trial) { return place.at(schedule::hash(trial.steps)) != f; });
      if (!train.trials.empty()) folds[f].train.tasks.push_back(std::move(train));
      if (!test.trials.empty()) folds[f].test.tasks.push_back(std::move(test));
    }
  }
  return folds;
}

}  // namespace

Result<Split> parse_split(std::string_view name) {
  if (const std::optional<Split> split = find_named(kSplits, name)) return *split;
  return invalid("unknown split '{}', expected one of {}", name, fmt::join(split_names(), ", "));
}

std::vector<std::string> split_names() { return names_of(kSplits); }

std::vector<Fold> make_folds(const Dataset& dataset, Split split) {
  switch (split) {
    case Split::kNone: return {};
    case Split::kByModel: return folds_by_model(dataset);
    case Split::kByTask: return folds_by_task(dataset);
    case Split::kWithin: return folds_within(dataset);
  }
  return {};
}

}  // namespace hone::learn
