#include <algorithm>
#include <unordered_map>

#include "hone/commands/training/training_data.h"
#include "hone/cost/bound_scores.h"
#include "hone/dataset.h"
#include "hone/db/copy.h"
#include "hone/trial/statistics.h"

namespace hone {
namespace {

constexpr size_t kBoundSamples = 4;  // schedules of a task that bound scores are taken of

// The keys of the tasks that are counted.
struct CountedTasks {
  std::unordered_map<DatasetStatistics::Counts*, std::set<uint64_t>> keys;
  void add(DatasetStatistics::Counts& counts, uint64_t task) {
    ++counts.records;
    keys[&counts].insert(task);
  }
};

Status count_records(db::TrialStore& store, DatasetStatistics& found) {
  CountedTasks tasks;
  std::vector<double> widths;
  HONE_RETURN_IF_ERROR(db::for_each_record(store, {}, [&](trial::Record&& record) {
    tasks.add(found.all, record.task);
    tasks.add(found.devices[fmt::format("{}/{}", record.device, record.threads)], record.task);
    tasks.add(found.kernels[record.kernel_class], record.task);
    tasks.add(found.models[record.model.empty() ? "-" : record.model], record.task);
    ++found.outcomes[std::string(trial::outcome_name(record.outcome))];
    if (record.outcome != trial::Outcome::kOk) return ok_status();
    ++found.samples[static_cast<int>(record.times.size())];
    if (record.centre > 0 && record.times.size() > 1)
      widths.push_back((record.high - record.low) / 2 / record.centre);
    found.disturbed += record.others > 0.25;
    return ok_status();
  }));
  for (const auto& [counts, keys] : tasks.keys) counts->tasks = std::ssize(keys);
  if (!widths.empty()) found.interval_half_width = trial::median(widths);
  return ok_status();
}

// What is summed over the combinations of task, device and number of threads.
struct Sums {
  std::vector<double> median, worst;  // relative to the best
  double reliable = 0;                // shares of pairs
  double memory = 0, core = 0;        // bound scores
  int64_t scored = 0;                 // combinations that have them
  int64_t asked = 0, counted = 0;     // schedules: all, those with hardware counters
};

void add_bounds(const learn::TaskTrials& task, const target::Target& target, Sums& sums) {
  const size_t step = std::max<size_t>(1, task.trials.size() / kBoundSamples);
  double memory = 0, core = 0;
  int count = 0;
  for (size_t i = 0; i < task.trials.size(); i += step) {
    const auto candidate = space::make_candidate(*task.dag, task.trials[i].steps);
    if (!candidate.ok()) continue;
    const trial::BoundScores scores =
        cost::bound_scores({&*candidate, &target, task.threads, task.key}, task.trials[i].counted);
    ++sums.asked, sums.counted += task.trials[i].counted.has_value();
    memory += scores.memory, core += scores.core, ++count;
  }
  if (count == 0) return;
  sums.memory += memory / count, sums.core += core / count, ++sums.scored;
}

void add(const learn::Dataset& dataset, DatasetStatistics& found, Sums& sums) {
  const Result<target::Target> target = target::of_key(dataset.device);
  found.left_out += dataset.left_out, found.outliers += dataset.outliers;
  found.bad_times += dataset.bad_times, found.single_schedules += dataset.small_tasks;
  for (const learn::TaskTrials& task : dataset.tasks) {
    std::vector<double> seconds;
    for (const learn::MeasuredSteps& trial : task.trials) seconds.push_back(trial.seconds);
    std::sort(seconds.begin(), seconds.end());
    int64_t reliable = 0;
    for (const double one : seconds) {
      const auto far = std::upper_bound(seconds.begin(), seconds.end(), kReliableRatio * one);
      reliable += seconds.end() - far;
    }
    const double n = static_cast<double>(seconds.size());
    ++found.combinations;
    found.with_many += std::ssize(seconds) >= kManySchedules;
    found.schedules += std::ssize(seconds);
    sums.reliable += static_cast<double>(reliable) / (n * (n - 1) / 2);
    sums.median.push_back(trial::median(seconds) / seconds.front());
    sums.worst.push_back(seconds.back() / seconds.front());
    if (target.ok()) add_bounds(task, *target, sums);
  }
}

}  // namespace

Result<DatasetStatistics> dataset_statistics(const std::string& db) {
  MeasuredStore store(db);
  HONE_ASSIGN_OR_RETURN(db::TrialStore* const trials, store.open());
  DatasetStatistics found;
  HONE_RETURN_IF_ERROR(count_records(*trials, found));
  HONE_ASSIGN_OR_RETURN(const std::vector<learn::Dataset> datasets, store.load_all_devices());
  Sums sums;
  for (const learn::Dataset& one : datasets) add(one, found, sums);
  found.median_over_best = trial::median(sums.median);
  found.worst_over_best = trial::median(sums.worst);
  found.reliable_pairs = sums.reliable / static_cast<double>(found.combinations);
  const double scored = static_cast<double>(std::max<int64_t>(sums.scored, 1));
  found.memory_bound = sums.memory / scored;
  found.core_bound = sums.core / scored;
  found.bounds_source = cost::bounds_source(sums.counted, sums.asked);
  return found;
}

}  // namespace hone
