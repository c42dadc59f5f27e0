#include "hone/learn/data_split.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hone/base/hash.h"
#include "hone/base/named.h"
#include "hone/base/rng.h"

namespace hone::learn {
namespace {

constexpr Named<SplitBy> kNames[] = {{"within", SplitBy::kWithin},
                                     {"task", SplitBy::kTask},
                                     {"model", SplitBy::kModel},
                                     {"device", SplitBy::kDevice}};

// Where a task or a group of schedules goes, by its hash: the same whatever else there is.
Part draw(uint64_t hash, const SplitOptions& options, bool with_test) {
  Rng rng(hash_combine(options.seed, hash));
  if (with_test && rng.chance(options.fraction)) return Part::kTest;
  return rng.chance(options.validation) ? Part::kValidation : Part::kTrain;
}

bool held_out_device(const Dataset& dataset, int threads, const SplitOptions& options) {
  return std::any_of(options.held_out.begin(), options.held_out.end(), [&](const auto& name) {
    return name == dataset.device || name == fmt::format("{}/{}", dataset.device, threads);
  });
}

Status check_held_out(std::span<const Dataset> datasets, const SplitOptions& options) {
  const bool named = options.by == SplitBy::kModel || options.by == SplitBy::kDevice;
  if (named == options.held_out.empty()) {
    return invalid("what is held out: a split by {} {}", split_by_name(options.by),
                   named ? "needs a name" : "takes none: tasks or schedules are drawn");
  }
  std::set<std::string> known;
  for (const Dataset& dataset : datasets) {
    if (options.by == SplitBy::kModel) known.merge(dataset.models());
    if (options.by != SplitBy::kDevice) continue;
    known.insert(dataset.device);
    for (const TaskTrials& task : dataset.tasks)
      known.insert(fmt::format("{}/{}", dataset.device, task.threads));
  }
  for (const std::string& name : options.held_out) {
    if (!known.contains(name))
      return invalid("what is held out: the data has no {} '{}', but {}", split_by_name(options.by),
                     name, fmt::join(known, ", "));
  }
  return ok_status();
}

// All schedules of a task, with whatever device and number of threads: their parts.
std::map<uint64_t, Part> split_within(const std::vector<const TaskTrials*>& tasks,
                                      const SplitOptions& options) {
  std::map<uint64_t, Part> parts;
  for (const auto& [schedule, group] : duplicate_groups(tasks))
    parts[schedule] = draw(hash_combine(tasks[0]->key, group), options, true);
  return parts;
}

Dataset& part_of(SplitData& data, Part part) {
  if (part == Part::kTest) return data.test;
  return part == Part::kTrain ? data.train : data.validation;
}

}  // namespace

std::string_view split_by_name(SplitBy by) {
  for (const auto& [text, value] : kNames) {
    if (value == by) return text;
  }
  return "";
}

Result<DataSplit> make_split(std::span<const Dataset> datasets, const SplitOptions& options,
                             const std::string& space_version) {
  HONE_RETURN_IF_ERROR(check_held_out(datasets, options));
  DataSplit split{options, space_version, {}, {}};
  const std::set<std::string> held_out(options.held_out.begin(), options.held_out.end());
  std::map<uint64_t, std::vector<const TaskTrials*>> tasks;
  std::set<uint64_t> theirs;  // tasks of the held-out networks, by the data of any device
  for (const Dataset& dataset : datasets) {
    if (options.by == SplitBy::kModel) theirs.merge(dataset.keys_of(held_out));
    for (const TaskTrials& task : dataset.tasks) tasks[task.key].push_back(&task);
  }
  for (const auto& [key, all] : tasks) {
    if (options.by == SplitBy::kWithin) {
      split.schedules[key] = split_within(all, options);
      continue;
    }
    split.tasks[key] =
        theirs.contains(key) ? Part::kTest : draw(key, options, options.by == SplitBy::kTask);
  }
  int64_t train = 0, test = 0;
  for (const Dataset& dataset : datasets) {
    const SplitData data = apply_split(dataset, split);
    train += data.train.size(), test += data.test.size();
  }
  if (train == 0 || test == 0) {
    return invalid("the split by {} leaves nothing to {}", split_by_name(options.by),
                   train == 0 ? "train on" : "test by");
  }
  return split;
}

SplitData apply_split(const Dataset& dataset, const DataSplit& split) {
  SplitData data;
  for (Dataset* part : {&data.train, &data.validation, &data.test}) part->device = dataset.device;
  for (const TaskTrials& task : dataset.tasks) {
    if (split.options.by != SplitBy::kWithin) {
      const auto part = split.tasks.find(task.key);
      if (part == split.tasks.end()) {
        data.unknown += std::ssize(task.trials);
      } else if (split.options.by == SplitBy::kDevice &&
                 held_out_device(dataset, task.threads, split.options)) {
        data.test.tasks.push_back(task);
      } else {
        part_of(data, part->second).tasks.push_back(task);
      }
      continue;
    }
    const auto parts = split.schedules.find(task.key);
    TaskTrials empty = task;
    empty.trials.clear();
    std::map<Part, TaskTrials> divided;
    for (const MeasuredSteps& trial : task.trials) {
      if (parts == split.schedules.end() || !parts->second.contains(schedule::hash(trial.steps))) {
        ++data.unknown;
        continue;
      }
      const Part part = parts->second.at(schedule::hash(trial.steps));
      divided.emplace(part, empty).first->second.trials.push_back(trial);
    }
    for (auto& [part, trials] : divided) part_of(data, part).tasks.push_back(std::move(trials));
  }
  return data;
}

}  // namespace hone::learn

hone::Result<hone::SplitBy> hone::parse_split_by(std::string_view name) {
  if (const std::optional<SplitBy> by = find_named(learn::kNames, name)) return *by;
  return invalid("unknown split '{}', expected within, task, model or device", name);
}
