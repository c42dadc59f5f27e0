#include "hone/learn/data_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/compute/dag_text.h"
#include "hone/learn/folds.h"

namespace hone::learn {
namespace {

// Twenty small tasks with twelve schedules each: the odd ones are of "a", all of "all".
Dataset make_dataset(const std::string& device) {
  Dataset dataset;
  dataset.device = device;
  const target::Target target;
  for (int n = 1; n <= 20; ++n) {
    TaskTrials task;
    task.dag = std::make_shared<const compute::Dag>(compute::testing::gemm(8, 16, 8 * n));
    task.key = compute::task_key(*task.dag);
    task.models = {"all"};
    if (n % 2 == 1) task.models.insert("a");
    const auto space = space::Space::create(*task.dag, target);
    Rng rng(static_cast<uint64_t>(n));
    std::set<std::string> seen;
    for (int tries = 0; tries < 400 && seen.size() < 12; ++tries) {
      schedule::Steps steps = space->steps(space->sample(rng));
      if (seen.insert(schedule::to_string(steps)).second)
        task.trials.push_back({std::move(steps), 1e-3 * static_cast<double>(tries + 1)});
    }
    for (const int threads : {1, 2}) {
      task.threads = threads;
      dataset.tasks.push_back(task);
    }
  }
  return dataset;
}

bool disjoint(const std::set<uint64_t>& a, const std::set<uint64_t>& b) {
  return std::none_of(a.begin(), a.end(), [&](uint64_t key) { return b.contains(key); });
}

TEST(data_split, by_task_shares_no_task) {
  const Dataset dataset = make_dataset("d");
  const Result<DataSplit> split =
      make_split({&dataset, 1}, {.by = SplitBy::kTask, .fraction = 0.3, .validation = 0.3}, "1");
  ASSERT_TRUE(split.ok()) << split.status().message();
  const SplitData data = apply_split(dataset, *split);
  EXPECT_TRUE(disjoint(data.train.keys(), data.test.keys()));
  EXPECT_TRUE(disjoint(data.train.keys(), data.validation.keys()));
  EXPECT_TRUE(disjoint(data.validation.keys(), data.test.keys()));
  EXPECT_EQ(data.train.size() + data.validation.size() + data.test.size(), dataset.size());
  EXPECT_EQ(data.test.device, "d");
}

TEST(data_split, by_model_trains_on_no_task_that_the_model_has) {
  Dataset dataset = make_dataset("d"), other = make_dataset("e");
  // On the other device nobody knows whose tasks these are.
  for (TaskTrials& task : other.tasks) task.models = {"all"};
  const std::vector<Dataset> both = {dataset, other};
  const Result<DataSplit> split = make_split(both, {.by = SplitBy::kModel, .held_out = {"a"}}, "1");
  ASSERT_TRUE(split.ok()) << split.status().message();
  std::set<uint64_t> theirs;
  for (const TaskTrials& task : dataset.tasks) {
    if (task.models.contains("a")) theirs.insert(task.key);
  }
  for (const Dataset& one : both) {
    const SplitData data = apply_split(one, *split);
    EXPECT_TRUE(disjoint(theirs, data.train.keys()));
    EXPECT_TRUE(disjoint(theirs, data.validation.keys()));
    EXPECT_EQ(data.test.keys(), theirs);
  }
}

TEST(data_split, within_keeps_near_duplicates_on_one_side) {
  const Dataset dataset = make_dataset("d");
  const Result<DataSplit> split =
      make_split({&dataset, 1}, {.by = SplitBy::kWithin, .fraction = 0.4, .validation = 0.2}, "1");
  ASSERT_TRUE(split.ok()) << split.status().message();
  const SplitData data = apply_split(dataset, *split);
  EXPECT_GT(data.test.size(), 0);
  EXPECT_GT(data.train.size(), 0);
  EXPECT_EQ(data.train.size() + data.validation.size() + data.test.size(), dataset.size());
  for (const TaskTrials& task : dataset.tasks) {
    std::vector<schedule::Steps> all;
    for (const MeasuredSteps& trial : task.trials) all.push_back(trial.steps);
    const std::vector<int> groups = near_duplicates(all, {});
    std::map<int, std::set<Part>> parts;
    for (size_t i = 0; i < all.size(); ++i)
      parts[groups[i]].insert(split->schedules.at(task.key).at(schedule::hash(all[i])));
    for (const auto& [group, sides] : parts) EXPECT_EQ(sides.size(), 1U);
  }
}

TEST(data_split, by_device_holds_out_a_device_or_its_threads) {
  const std::vector<Dataset> both = {make_dataset("d"), make_dataset("e")};
  const Result<DataSplit> split =
      make_split(both, {.by = SplitBy::kDevice, .held_out = {"e/2"}, .validation = 0}, "1");
  ASSERT_TRUE(split.ok()) << split.status().message();
  EXPECT_EQ(apply_split(both[0], *split).test.size(), 0);
  const SplitData data = apply_split(both[1], *split);
  EXPECT_EQ(data.test.size(), data.train.size());
  for (const TaskTrials& task : data.test.tasks) EXPECT_EQ(task.threads, 2);
}

TEST(data_split, is_the_same_for_a_task_whatever_else_there_is) {
  Dataset dataset = make_dataset("d");
  const SplitOptions options = {.by = SplitBy::kTask, .fraction = 0.5};
  const DataSplit all = make_split({&dataset, 1}, options, "1").value();
  dataset.tasks.resize(20);
  const DataSplit some = make_split({&dataset, 1}, options, "1").value();
  for (const auto& [key, part] : some.tasks) EXPECT_EQ(all.tasks.at(key), part);
}

TEST(data_split, what_was_measured_later_is_in_no_part) {
  const Dataset dataset = make_dataset("d");
  Dataset some = dataset;
  some.tasks.resize(20);
  for (const SplitBy by : {SplitBy::kTask, SplitBy::kWithin}) {
    const DataSplit split = make_split({&some, 1}, {.by = by, .fraction = 0.5}, "1").value();
    const SplitData data = apply_split(dataset, split);
    EXPECT_EQ(data.unknown, dataset.size() - some.size());
  }
}

TEST(data_split, file_keeps_everything_and_bad_ones_are_refused) {
  const Dataset dataset = make_dataset("d");
  for (const SplitBy by : {SplitBy::kTask, SplitBy::kWithin}) {
    const DataSplit split = make_split({&dataset, 1}, {.by = by, .fraction = 0.5}, "1").value();
    const std::string text = format(split);
    const Result<DataSplit> read = parse_data_split(text, "s.json", "1");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->tasks, split.tasks);
    EXPECT_EQ(read->schedules, split.schedules);
    EXPECT_EQ(read->options.by, by);
    const auto other = parse_data_split(text, "s.json", "2");
    ASSERT_FALSE(other.ok());
    EXPECT_NE(other.status().message().find("space version 1, expected 2"), std::string::npos);
    EXPECT_FALSE(parse_data_split(text.substr(0, text.size() / 2), "s.json", "1").ok());
  }
  EXPECT_FALSE(parse_data_split("{}", "s.json", "1").ok());
  EXPECT_FALSE(parse_data_split("[1]", "s.json", "1").ok());
  EXPECT_FALSE(parse_data_split("not json", "s.json", "1").ok());
}

TEST(data_split, unknown_names_and_empty_parts_are_errors) {
  const Dataset dataset = make_dataset("d");
  const auto message = [&](const SplitOptions& options) {
    return std::string(make_split({&dataset, 1}, options, "1").status().message());
  };
  EXPECT_NE(message({.by = SplitBy::kModel, .held_out = {"b"}}).find("a, all"), std::string::npos);
  EXPECT_NE(message({.by = SplitBy::kModel}).find("needs a name"), std::string::npos);
  EXPECT_NE(message({.by = SplitBy::kTask, .held_out = {"a"}}).find("takes none"),
            std::string::npos);
  EXPECT_NE(message({.by = SplitBy::kModel, .held_out = {"all"}}).find("nothing to train on"),
            std::string::npos);
  EXPECT_NE(message({.by = SplitBy::kTask, .fraction = 0}).find("nothing to test by"),
            std::string::npos);
}

TEST(near_duplicates, are_equal_features_or_one_small_number) {
  const compute::Dag dag = compute::testing::gemm(8, 16, 8);
  const target::Target target;
  const auto space = space::Space::create(dag, target);
  const schedule::Steps steps = space->steps(space->default_point());
  const std::vector<schedule::Steps> same = {steps, steps};
  EXPECT_EQ(near_duplicates(same, {}), (std::vector<int>{0, 0}));
  const schedule::Steps none;
  const std::vector<schedule::Steps> different = {steps, none};
  EXPECT_EQ(near_duplicates(different, {}), (std::vector<int>{0, 1}));
  const std::vector<std::vector<float>> features = {{1, 2}, {1, 2}};
  EXPECT_EQ(near_duplicates(different, features), (std::vector<int>{0, 0}));
}

// Schedules that differ only in the number of threads are near duplicates, too.
TEST(folds, within_keep_near_duplicates_together) {
  const Dataset dataset = make_dataset("d");
  std::map<uint64_t, std::map<uint64_t, uint64_t>> groups;  // by task, then schedule
  for (const TaskTrials& task : dataset.tasks) {
    const TaskTrials* const one[] = {&task};
    groups[task.key] = duplicate_groups(one);
  }
  const std::vector<Fold> folds = make_folds(dataset, Split::kWithin);
  ASSERT_EQ(folds.size(), 5U);
  std::map<std::pair<uint64_t, uint64_t>, std::set<size_t>> judged_in;  // by task and group
  int64_t judged = 0;
  for (size_t f = 0; f < folds.size(); ++f) {
    EXPECT_EQ(folds[f].train.size() + folds[f].test.size(), dataset.size());
    EXPECT_NEAR(static_cast<double>(folds[f].test.size()), static_cast<double>(dataset.size()) / 5,
                static_cast<double>(dataset.size()) / 20);
    judged += folds[f].test.size();
    for (const TaskTrials& task : folds[f].test.tasks) {
      for (const MeasuredSteps& trial : task.trials)
        judged_in[{task.key, groups[task.key].at(schedule::hash(trial.steps))}].insert(f);
    }
  }
  EXPECT_EQ(judged, dataset.size());
  for (const auto& [group, places] : judged_in) EXPECT_EQ(places.size(), 1U);
  EXPECT_LT(std::ssize(judged_in), dataset.size() / 2) << "no schedule has a near duplicate";
}

TEST(keep_tasks, fewer_are_among_more_on_all_devices) {
  const auto kept = [](int count, uint64_t seed) {
    Dataset first = make_dataset("d"), second = make_dataset("e");
    second.tasks.erase(second.tasks.begin(), second.tasks.begin() + 20);
    Dataset* const both[] = {&first, &second};
    const Status status = keep_tasks(both, count, seed);
    EXPECT_TRUE(status.ok()) << status.message();
    const std::set<uint64_t> keys = first.keys();
    EXPECT_EQ(std::ssize(keys), count);
    EXPECT_EQ(std::ssize(first.tasks), 2 * count);  // threads
    for (const uint64_t key : second.keys()) EXPECT_TRUE(keys.contains(key));
    return keys;
  };
  const std::set<uint64_t> few = kept(5, 1), more = kept(11, 1);
  EXPECT_TRUE(std::includes(more.begin(), more.end(), few.begin(), few.end()));
  EXPECT_EQ(kept(5, 1), few);
  EXPECT_NE(kept(5, 2), few);
  EXPECT_EQ(kept(20, 1), make_dataset("d").keys());

  Dataset dataset = make_dataset("d");
  Dataset* const one[] = {&dataset};
  const Status status = keep_tasks(one, 21, 1);
  EXPECT_EQ(status.message(), "21 tasks are wanted, but there are 20 to train on");
  EXPECT_EQ(dataset.keys().size(), 20U);
}

TEST(keep_tasks, does_not_depend_on_what_is_not_trained_on) {
  Dataset all = make_dataset("d"), part = all;
  Dataset* const one[] = {&all};
  ASSERT_TRUE(keep_tasks(one, 8, 1).ok());
  // Without some of those that were not drawn, the same are drawn.
  const std::set<uint64_t> drawn = all.keys();
  int left = 5;
  std::erase_if(part.tasks,
                [&](const TaskTrials& task) { return !drawn.contains(task.key) && left-- > 0; });
  Dataset* const other[] = {&part};
  ASSERT_TRUE(keep_tasks(other, 8, 1).ok());
  EXPECT_EQ(part.keys(), drawn);
}

}  // namespace
}  // namespace hone::learn
