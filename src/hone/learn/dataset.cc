#include "hone/learn/dataset.h"

#include <algorithm>
#include <cmath>

#include "hone/base/hash.h"
#include "hone/compute/dag_text.h"
#include "hone/db/copy.h"
#include "hone/learn/task_list.h"
#include "hone/trial/statistics.h"

namespace hone::learn {
namespace {

struct Collected {
  TaskTrials task;
  bool readable = false;
  std::vector<std::string> order;  // texts of steps, as first stored
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, std::vector<trial::BoundScores>> counted;
};
using Key = std::pair<uint64_t, int>;  // task, threads

// Without those that are far off the median, of two the lower one; how many those are.
int64_t drop_outliers(std::vector<double>& seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double middle = seconds[(seconds.size() - 1) / 2];
  return static_cast<int64_t>(std::erase_if(seconds, [&](double value) {
    return value > kOutlierRatio * middle || middle > kOutlierRatio * value;
  }));
}

std::optional<trial::BoundScores> mean_bounds(const std::vector<trial::BoundScores>& all) {
  if (all.empty()) return std::nullopt;
  trial::BoundScores sum;
  for (const trial::BoundScores& one : all) sum.memory += one.memory, sum.core += one.core;
  const auto count = static_cast<double>(all.size());
  return trial::BoundScores{sum.memory / count, sum.core / count};
}

// A duel compared it with the best so far. Without one the fastest sample counts: whatever disturbs
// a machine only adds.
double undisturbed(const trial::Record& record) {
  if (!record.duel.empty() || record.times.empty()) return record.centre;
  return *std::min_element(record.times.begin(), record.times.end()) / record.drift;
}

void add(const trial::Record& record, std::map<Key, Collected>& tasks, Dataset& dataset) {
  const double time = undisturbed(record);
  if (!std::isfinite(time) || time <= 0) {
    ++dataset.bad_times;
    return;
  }
  const auto [place, added] = tasks.try_emplace({record.task, record.threads});
  Collected& collected = place->second;
  if (added) {
    collected.task.key = record.task;
    collected.task.threads = record.threads;
    collected.task.kernel_class = record.kernel_class;
    Result<compute::Dag> dag = compute::parse_dag(record.task_text);
    collected.readable = dag.ok() && compute::task_key(*dag) == record.task;
    if (collected.readable)
      collected.task.dag = std::make_shared<const compute::Dag>(std::move(dag).value());
  }
  std::vector<double>& seconds = collected.seconds[record.steps];
  if (seconds.empty()) collected.order.push_back(record.steps);
  seconds.push_back(time);
  if (record.bounds) collected.counted[record.steps].push_back(record.bounds->scores);
}

}  // namespace

int64_t Dataset::size() const {
  int64_t size = 0;
  for (const TaskTrials& task : tasks) size += std::ssize(task.trials);
  return size;
}

std::set<std::string> Dataset::models() const {
  std::set<std::string> models;
  for (const TaskTrials& task : tasks) models.insert(task.models.begin(), task.models.end());
  return models;
}

std::set<uint64_t> Dataset::keys() const {
  std::set<uint64_t> keys;
  for (const TaskTrials& task : tasks) keys.insert(task.key);
  return keys;
}

std::set<uint64_t> Dataset::keys_of(const std::set<std::string>& networks) const {
  std::set<uint64_t> keys;
  for (const TaskTrials& task : tasks) {
    const bool theirs =
        std::any_of(task.models.begin(), task.models.end(),
                    [&](const std::string& name) { return networks.contains(name); });
    if (theirs) keys.insert(task.key);
  }
  return keys;
}

Result<StoreContents> read_contents(db::TrialStore& store) {
  StoreContents contents;
  HONE_RETURN_IF_ERROR(db::for_each_record(store, {}, [&](const trial::Record& record) {
    if (!record.model.empty()) contents.networks[record.task].insert(record.model);
    contents.devices.insert(record.device);
    contents.versions.insert(record.version);
    ++contents.records;
    return ok_status();
  }));
  return contents;
}

Result<Dataset> load_dataset(db::TrialStore& store, const std::string& device, int min_trials,
                             const std::string& version, int threads,
                             const StoreContents* contents) {
  if (contents == nullptr) {
    HONE_ASSIGN_OR_RETURN(const StoreContents read, read_contents(store));
    return load_dataset(store, device, min_trials, version, threads, &read);
  }
  Dataset dataset;
  dataset.device = device;
  std::map<Key, Collected> tasks;
  db::Filter measured = {.device = device, .outcome = trial::Outcome::kOk, .with_task_text = true};
  if (threads > 0) measured.threads = threads;
  HONE_RETURN_IF_ERROR(db::for_each_record(store, measured, [&](const trial::Record& record) {
    if (version.empty() || record.version == version)
      add(record, tasks, dataset);
    else
      ++dataset.other_versions[record.version];
    return ok_status();
  }));
  for (auto& [key, collected] : tasks) {
    // None: its records name no network, or came after the contents were read.
    const auto networks = contents->networks.find(key.first);
    if (networks != contents->networks.end()) collected.task.models = networks->second;
    for (const std::string& text : collected.order) {
      Result<schedule::Steps> steps = schedule::parse_steps(text);
      std::vector<double>& seconds = collected.seconds.at(text);
      dataset.outliers += drop_outliers(seconds);
      const bool usable = collected.readable && steps.ok() &&
                          space::make_candidate(*collected.task.dag, *steps).ok();
      if (usable)
        collected.task.trials.push_back({std::move(steps).value(), trial::median(seconds),
                                         mean_bounds(collected.counted[text])});
      else
        ++dataset.left_out;
    }
    if (std::ssize(collected.task.trials) >= min_trials)
      dataset.tasks.push_back(std::move(collected.task));
    else
      ++dataset.small_tasks;
  }
  return dataset;
}

void append(Dataset& dataset, const Dataset& more) {
  std::map<Key, TaskTrials> tasks;
  for (const Dataset* part : {&std::as_const(dataset), &more}) {
    for (const TaskTrials& task : part->tasks) {
      const auto [place, added] = tasks.try_emplace({task.key, task.threads}, task);
      if (added) continue;
      std::vector<MeasuredSteps>& trials = place->second.trials;
      trials.insert(trials.end(), task.trials.begin(), task.trials.end());
    }
  }
  dataset.tasks.clear();
  for (auto& [key, task] : tasks) dataset.tasks.push_back(std::move(task));
}

Dataset without_models(const Dataset& dataset, const std::set<std::string>& models) {
  return tasks_except(dataset, dataset.keys_of(models));
}

Status keep_tasks(std::span<Dataset* const> parts, int count, uint64_t seed) {
  std::set<std::pair<uint64_t, uint64_t>> drawn;  // place in the order, key
  for (const Dataset* part : parts) {
    for (const TaskTrials& task : part->tasks)
      drawn.emplace(hash_combine(seed, task.key), task.key);
  }
  if (std::ssize(drawn) < count)
    return invalid("{} tasks are wanted, but there are {} to train on", count, drawn.size());
  drawn.erase(std::next(drawn.begin(), count), drawn.end());
  for (Dataset* part : parts) {
    std::erase_if(part->tasks, [&](const TaskTrials& task) {
      return !drawn.contains({hash_combine(seed, task.key), task.key});
    });
  }
  return ok_status();
}

}  // namespace hone::learn
