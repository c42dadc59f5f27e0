#include "hone/cost/dataset.h"

#include <algorithm>
#include <map>

#include "hone/compute/dag_text.h"

namespace hone::cost {
namespace {

constexpr int64_t kPage = 2000;  // records in memory at a time

struct Collected {
  TaskTrials task;
  bool readable = false;
  std::vector<std::string> order;  // texts of steps, as first stored
  std::map<std::string, std::vector<double>> seconds;
};
using Key = std::pair<uint64_t, int>;  // task, threads

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A duel compared it with the best so far. Without one the fastest sample counts: whatever disturbs
// a machine only adds.
double undisturbed(const db::Record& record) {
  if (!record.duel.empty() || record.times.empty()) return record.centre;
  return *std::min_element(record.times.begin(), record.times.end()) / record.drift;
}

void add(const db::Record& record, std::map<Key, Collected>& tasks) {
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
  if (!record.model.empty()) collected.task.models.insert(record.model);
  std::vector<double>& seconds = collected.seconds[record.steps];
  if (seconds.empty()) collected.order.push_back(record.steps);
  seconds.push_back(undisturbed(record));
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

Result<Dataset> load_dataset(db::Store& store, const std::string& device, int min_trials) {
  std::map<Key, Collected> tasks;
  db::Filter filter;
  filter.device = device;
  filter.outcome = measure::Outcome::kOk;
  filter.with_task_text = true;
  filter.limit = kPage;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<db::Record> page, store.query(filter));
    for (const db::Record& record : page) add(record, tasks);
    if (std::ssize(page) < kPage) break;
    filter.after_id = page.back().id;
  }
  Dataset dataset;
  for (auto& [key, collected] : tasks) {
    for (const std::string& text : collected.order) {
      Result<schedule::Steps> steps = schedule::parse_steps(text);
      const bool usable = collected.readable && steps.ok() &&
                          space::make_candidate(*collected.task.dag, *steps).ok();
      if (usable)
        collected.task.trials.push_back(
            {std::move(steps).value(), median(collected.seconds.at(text))});
      else
        ++dataset.left_out;
    }
    if (std::ssize(collected.task.trials) >= min_trials)
      dataset.tasks.push_back(std::move(collected.task));
  }
  return dataset;
}

Dataset without_models(const Dataset& dataset, const std::set<std::string>& models) {
  Dataset rest;
  for (const TaskTrials& task : dataset.tasks) {
    const bool theirs = std::any_of(task.models.begin(), task.models.end(),
                                    [&](const std::string& name) { return models.contains(name); });
    if (!theirs) rest.tasks.push_back(task);
  }
  return rest;
}

}  // namespace hone::cost
