#include "hone/learn/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/compute/dag_testing.h"
#include "hone/compute/dag_text.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/net/family.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/learn/net_rows.h"
#include "hone/target/target.h"

namespace hone::learn {

namespace net = cost::net;
namespace {

// A database of distinct schedules of two tasks, timed by the analytic model itself.
class Database {
 public:
  Database() : store_(std::move(db::open_store(":memory:")).value()) {
    add(compute::testing::gemm(32, 64, 32), "first", 12);
    add(compute::testing::conv2d({.h = 8, .w = 8, .ic = 16, .oc = 16}), "second", 12);
  }
  db::TrialStore& store() { return *store_; }
  [[nodiscard]] const target::Target& target() const { return target_; }

 private:
  void add(const compute::Dag& dag, const std::string& model, int count) {
    const auto space = space::Space::create(dag, target_);
    const auto analytic = cost::make_model("analytic");
    ASSERT_TRUE(space.ok() && analytic.ok());
    Rng rng(7);
    std::set<std::string> seen;
    while (std::ssize(seen) < count) {
      const space::Point point = space->sample(rng);
      const auto candidate = space->instantiate(point);
      const std::string steps = schedule::to_string(space->steps(point));
      if (!candidate.ok() || !seen.insert(steps).second) continue;
      const cost::Query query{&*candidate, &target_, 1, compute::task_key(dag)};
      trial::Record record;
      record.task = query.task;
      record.kernel_class = compute::kernel_class(dag);
      record.task_text = compute::to_text(dag);
      record.device = "device";
      record.version = "1";
      record.algorithm = "direct";
      record.steps = steps;
      record.accuracy = trial::accuracy_of(steps);
      record.centre = (*analytic)->predict({&query, 1}).value()[0];
      record.low = record.high = record.centre;
      record.times = {record.centre};
      record.model = model;
      ASSERT_TRUE(store_->add({&record, 1}).ok());
    }
  }
  target::Target target_ = target::find("x86-64-avx2").value();
  std::unique_ptr<db::Store> store_;
};

TEST(dataset, is_read_from_a_store) {
  Database database;
  const Result<Dataset> dataset = load_dataset(database.store(), "device");
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(dataset->tasks.size(), 2u);
  EXPECT_EQ(dataset->size(), 24);
  EXPECT_EQ(dataset->left_out, 0);
  EXPECT_EQ(dataset->models(), (std::set<std::string>{"first", "second"}));
  const Dataset rest = without_models(*dataset, {"first"});
  ASSERT_EQ(rest.tasks.size(), 1u);
  EXPECT_EQ(rest.tasks[0].models, (std::set<std::string>{"second"}));
  EXPECT_EQ(load_dataset(database.store(), "another device")->size(), 0);
}

TEST(dataset, takes_what_was_counted_of_a_schedule) {
  Database database;
  const std::vector<trial::Record> records =
      database.store().query({.with_task_text = true, .limit = 2}).value();
  for (const double memory : {0.25, 0.75}) {  // measured twice more, with counters
    trial::Record record = records[1];
    record.bounds = {{memory, 0.125}, "amd_zen4"};
    ASSERT_TRUE(database.store().add({&record, 1}).ok());
  }
  const Dataset dataset = load_dataset(database.store(), "device").value();
  int counted = 0;
  for (const TaskTrials& task : dataset.tasks) {
    for (const MeasuredSteps& trial : task.trials) {
      if (!trial.counted) continue;
      ++counted;
      EXPECT_EQ(schedule::to_string(trial.steps), records[1].steps);
      EXPECT_EQ(trial.counted->memory, 0.5);
      EXPECT_EQ(trial.counted->core, 0.125);
    }
  }
  EXPECT_EQ(counted, 1);
  EXPECT_EQ(dataset.size(), 24);
}

TEST(net_rows, tell_times_relative_to_the_default_schedule) {
  Database database;
  const Dataset dataset = load_dataset(database.store(), "device").value();
  const net::Net net = net::make_net(net::kFasor, net::all_inputs(), {}).value();
  const net::NetRows rows = make_rows(dataset, database.target(), net, {}).value();
  for (size_t t = 0; t < dataset.tasks.size(); ++t) {
    const TaskTrials& task = dataset.tasks[t];
    const auto usual = space::default_candidate(*task.dag, database.target()).value();
    const cost::Query query{&usual, &database.target(), task.threads, task.key};
    const double seconds = cost::make_model("analytic").value()->predict({&query, 1}).value()[0];
    for (size_t i = 0; i < task.trials.size(); ++i) {
      const auto row = static_cast<size_t>(rows.group_begin[t]) + i;
      EXPECT_NEAR(rows.log_time[row], std::log(task.trials[i].seconds / seconds), 1e-5);
    }
  }
}

TEST(net_rows, have_the_counted_bounds_where_there_are_any) {
  Database database;
  Dataset dataset = load_dataset(database.store(), "device").value();
  dataset.tasks[1].trials[2].counted = trial::BoundScores{0.25, 0.125};
  const net::Net net = net::make_net(net::kFasor, net::all_inputs(), {}).value();
  const net::NetRows rows = make_rows(dataset, database.target(), net, {}).value();
  const auto place = static_cast<size_t>(rows.group_begin[1] + 2);
  for (size_t row = 0; row < rows.memory_bound.size(); ++row) {
    if (row == place) {
      EXPECT_EQ(rows.memory_bound[row], 0.25F);
      EXPECT_EQ(rows.core_bound[row], 0.125F);
    } else {
      EXPECT_NEAR(rows.memory_bound[row] + rows.core_bound[row], 1, 1e-6);
    }
  }
}

// Predicts all times as equal, and half of what the static analysis says of memory.
class HalfBounds : public cost::CostModel, public cost::BoundsPredictor {
 public:
  [[nodiscard]] std::string_view name() const override { return "half"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    return std::vector<double>(queries.size(), 1e-3);
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }
  [[nodiscard]] Result<std::optional<std::vector<cost::BoundScores>>> predict_bounds(
      std::span<const cost::Query> queries) const override {
    std::vector<cost::BoundScores> all;
    for (const cost::Query& query : queries) {
      const cost::BoundScores scores = cost::static_bounds(query);
      all.push_back({scores.memory / 2, scores.core});
    }
    return std::optional(std::move(all));
  }
};

TEST(evaluate, scores_of_memory_and_core_are_judged_by_counters_or_the_static_analysis) {
  Database database;
  Dataset dataset = load_dataset(database.store(), "device").value();
  const HalfBounds half;
  const auto plain = evaluate(dataset, database.target(), half).value().bounds.value();
  EXPECT_EQ(plain.predicted_by, "model");
  EXPECT_EQ(plain.judged_by, "static");
  EXPECT_EQ(plain.schedules, dataset.size());
  EXPECT_NEAR(plain.core_error, 0, 1e-9);
  EXPECT_NEAR(plain.core_r_squared, 1, 1e-9);
  EXPECT_GT(plain.memory_error, 0);
  // The static analysis is not judged by itself, but by what was counted.
  const std::unique_ptr<cost::CostModel> analytic = cost::make_model("analytic").value();
  EXPECT_FALSE(evaluate(dataset, database.target(), *analytic).value().bounds.has_value());
  dataset.tasks[1].trials[2].counted = trial::BoundScores{0.25, 0.125};
  const auto counted = evaluate(dataset, database.target(), *analytic).value().bounds.value();
  EXPECT_EQ(counted.predicted_by, "static analysis");
  EXPECT_EQ(counted.judged_by, "counters");
  EXPECT_EQ(counted.schedules, 1);
  EXPECT_GT(counted.core_error, 0);
  EXPECT_EQ(evaluate(dataset, database.target(), half).value().bounds->judged_by, "mixed");
}

TEST(dataset, counts_what_it_cannot_read) {
  Database database;
  trial::Record broken;
  broken.task = 1;
  broken.kernel_class = "copy";
  broken.task_text = "copy data[1] -> out[1]";
  broken.device = "device";
  broken.times = {1};
  broken.centre = broken.low = broken.high = 1;
  ASSERT_TRUE(database.store().add({&broken, 1}).ok());
  EXPECT_EQ(load_dataset(database.store(), "device")->left_out, 1);
  EXPECT_EQ(load_dataset(database.store(), "device")->small_tasks, 1);
  EXPECT_EQ(load_dataset(database.store(), "device", 13)->small_tasks, 3);
  EXPECT_EQ(load_dataset(database.store(), "device", 13)->size(), 0);
}

TEST(evaluate, a_model_of_what_was_measured_is_perfect) {
  Database database;
  const Dataset dataset = load_dataset(database.store(), "device").value();
  const auto model = cost::make_model("analytic");
  const Result<Evaluation> evaluation = evaluate(dataset, database.target(), **model);
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->classes.size(), 2u);
  EXPECT_EQ(evaluation->all.tasks, 2);
  EXPECT_EQ(evaluation->all.trials, 24);
  EXPECT_DOUBLE_EQ(evaluation->all.pair_accuracy, 1);
  EXPECT_DOUBLE_EQ(evaluation->all.top1, 1);
  EXPECT_NEAR(evaluation->all.r_squared, 1, 1e-9);
  EXPECT_DOUBLE_EQ(evaluation->all.peak5, 1);
  EXPECT_NEAR(evaluation->all.sum10, 1, 1e-9);  // of 12 schedules each
  EXPECT_EQ(evaluation->all.sum10_tasks, 2);
  EXPECT_EQ(evaluation->all.sum50_tasks, 0);
  EXPECT_NEAR(evaluation->all.rmse, 0, 1e-9);
  EXPECT_NEAR(evaluation->all.r_squared_seconds, 1, 1e-9);
  EXPECT_NEAR(evaluation->all.r_squared_log_seconds, 1, 1e-9);
}

// Says what is right of every task, but for a factor of its own.
class OffByTask : public cost::CostModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "off"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    HONE_ASSIGN_OR_RETURN(std::vector<double> seconds, analytic_->predict(queries));
    for (size_t i = 0; i < seconds.size(); ++i)
      seconds[i] *= tasks_.try_emplace(queries[i].task, tasks_.empty() ? 0.01 : 100).first->second;
    return seconds;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }

 private:
  std::unique_ptr<cost::CostModel> analytic_ = cost::make_model("analytic").value();
  mutable std::map<uint64_t, double> tasks_;
};

TEST(evaluate, knowing_the_order_is_not_knowing_the_time) {
  Database database;
  const Dataset dataset = load_dataset(database.store(), "device").value();
  const Evaluation found = evaluate(dataset, database.target(), OffByTask()).value();
  EXPECT_NEAR(found.all.r_squared, 1, 1e-9);
  EXPECT_DOUBLE_EQ(found.all.pair_accuracy, 1);
  EXPECT_LT(found.all.r_squared_seconds, 0);
  EXPECT_LT(found.all.r_squared_log_seconds, 0);
  // Each class of the two tasks is off by its own factor, which its schedules have in common.
  for (const Score& one : found.classes) EXPECT_LT(one.r_squared_log_seconds, 0);
}

// Says that every schedule takes as many seconds as it has steps.
class Nonsense : public cost::CostModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "nonsense"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    std::vector<double> seconds;
    for (const cost::Query& query : queries)
      seconds.push_back(static_cast<double>(hash(query.candidate->steps) % 1000));
    return seconds;
  }
  [[nodiscard]] Status update(std::span<const cost::Observation>) override { return ok_status(); }
};

Result<std::unique_ptr<cost::CostModel>> train_nonsense(const Dataset&) {
  return std::unique_ptr<cost::CostModel>(std::make_unique<Nonsense>());
}

TEST(evaluate, a_network_is_the_sum_of_its_tasks) {
  Database database;
  const Dataset dataset = load_dataset(database.store(), "device").value();
  const Evaluation apart = evaluate(dataset, database.target(), Nonsense()).value();
  ASSERT_EQ(apart.networks.size(), 2u);
  EXPECT_EQ(apart.networks[0].network, "first");
  EXPECT_EQ(apart.networks[0].tasks, 1);
  EXPECT_LT(apart.networks[0].top1(), 1);
  Networks both;
  for (const TaskTrials& task : dataset.tasks)
    both["both"][task.key] = task.models.contains("first") ? 3 : 1;
  const Evaluation together =
      evaluate(dataset, database.target(), Nonsense(), {.networks = both}).value();
  ASSERT_EQ(together.networks.size(), 1u);
  const NetworkScore& sum = together.networks[0];
  EXPECT_EQ(sum.tasks, 2);
  EXPECT_EQ(sum.listed, 2);
  EXPECT_DOUBLE_EQ(sum.best_seconds,
                   3 * apart.networks[0].best_seconds + apart.networks[1].best_seconds);
  EXPECT_DOUBLE_EQ(sum.top1_seconds,
                   3 * apart.networks[0].top1_seconds + apart.networks[1].top1_seconds);
}

TEST(evaluate, counts_what_has_too_few_schedules) {
  Database database;
  Dataset dataset = load_dataset(database.store(), "device").value();
  EXPECT_EQ(evaluate(dataset, database.target(), Nonsense())->not_judged, 0);
  dataset.tasks[0].trials.resize(kMinTrialsToJudge - 1);
  const Evaluation fewer = evaluate(dataset, database.target(), Nonsense()).value();
  EXPECT_EQ(fewer.not_judged, 1);
  EXPECT_EQ(fewer.all.tasks + 1, std::ssize(dataset.tasks));
}

// Judges one kind of kernels only.
class Choosy : public Nonsense {
 public:
  explicit Choosy(std::string known) : known_(std::move(known)) {}
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    if (compute::kernel_class(*queries[0].candidate->dag) == known_)
      return Nonsense::predict(queries);
    return error(Code::kUnsupported, "it has too many loops");
  }

 private:
  std::string known_;
};

TEST(evaluate, counts_what_the_model_cannot_judge) {
  Database database;
  const Dataset dataset = load_dataset(database.store(), "device").value();
  const Result<Evaluation> some = evaluate(dataset, database.target(), Choosy("matmul"));
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_EQ(some->refused, 1);
  EXPECT_EQ(some->all.tasks, 1);
  const Status none = evaluate(dataset, database.target(), Choosy("softmax")).status();
  EXPECT_EQ(none.code(), Code::kUnsupported);
  EXPECT_TRUE(none.message().ends_with(": it has too many loops")) << none.message();
}

// A time of one thread is no part of a network that two run.
TEST(evaluate, a_network_is_judged_by_each_number_of_threads) {
  Database database;
  Dataset dataset = load_dataset(database.store(), "device").value();
  const Evaluation one = evaluate(dataset, database.target(), Nonsense()).value();
  Dataset more = dataset;
  for (TaskTrials& task : more.tasks) {
    task.threads = 2;
    for (MeasuredSteps& trial : task.trials) trial.seconds /= 2;
  }
  append(dataset, more);
  const Evaluation both = evaluate(dataset, database.target(), Nonsense()).value();
  ASSERT_EQ(both.networks.size(), 2 * one.networks.size());
  for (const NetworkScore& network : both.networks) {
    const NetworkScore& alone = one.networks[network.network == "first" ? 0 : 1];
    EXPECT_EQ(network.tasks, alone.tasks);
    EXPECT_DOUBLE_EQ(network.best_seconds * network.threads, alone.best_seconds);
    EXPECT_DOUBLE_EQ(network.top1(), alone.top1());
  }
}

TEST(evaluate, the_best_of_fewer_schedules_is_easier_to_find) {
  Database database;
  const Dataset dataset = load_dataset(database.store(), "device").value();
  const std::vector<int> counts = {12, 3, 6};
  const auto judge = [&] {
    return evaluate(dataset, database.target(), Nonsense(), {.schedules = counts}).value();
  };
  const Evaluation found = judge();
  ASSERT_EQ(found.by_schedules.size(), 3U);
  const ScheduleCountScore &few = found.by_schedules[0], &more = found.by_schedules[1],
                           &all = found.by_schedules[2];
  EXPECT_EQ(few.schedules, 3);
  EXPECT_EQ(few.score.tasks, 2);
  EXPECT_EQ(few.score.trials, 6);
  // Chance finds it among three more often than among twelve.
  EXPECT_GT(few.score.top1, more.score.top1);
  EXPECT_GT(more.score.top1, all.score.top1);
  EXPECT_DOUBLE_EQ(few.score.top5, 1);
  EXPECT_GT(few.network_top1, all.network_top1);
  // All schedules are the same in each draw: what is said of all.
  EXPECT_NEAR(all.score.pair_accuracy, found.all.pair_accuracy, 1e-12);
  EXPECT_NEAR(all.score.top1, found.all.top1, 1e-12);
  EXPECT_NEAR(all.score.peak5, found.all.peak5, 1e-12);
  EXPECT_NEAR(all.score.r_squared, found.all.r_squared, 1e-9 * std::abs(found.all.r_squared));
  EXPECT_NEAR(all.score.rmse, found.all.rmse, 1e-12);
  EXPECT_NEAR(all.network_top1, (found.networks[0].top1() + found.networks[1].top1()) / 2, 1e-12);
  EXPECT_NEAR(all.network_top5, (found.networks[0].top5() + found.networks[1].top5()) / 2, 1e-12);
  EXPECT_EQ(judge().by_schedules[0].score.top1, few.score.top1);
  const auto folds = cross_evaluate(dataset, database.target(), Split::kByModel, train_nonsense,
                                    {.schedules = counts});
  ASSERT_TRUE(folds.ok()) << folds.status().message();
  EXPECT_NEAR(folds->by_schedules[0].score.top1, few.score.top1, 1e-12);
  // Without any of a model that knows the times.
  const auto model = cost::make_model("analytic");
  EXPECT_NEAR(evaluate(dataset, database.target(), **model, {.schedules = counts})
                  ->by_schedules[1]
                  .score.top1,
              1, 1e-12);
}

// Folds tell of every task once; drawing fewer schedules tells of none again.
TEST(evaluate, tells_what_was_predicted) {
  Database database;
  Dataset dataset = load_dataset(database.store(), "device").value();
  dataset.tasks[0].trials.resize(kMinTrialsToJudge - 1);
  std::map<uint64_t, std::vector<double>> told;
  const Judging judging = {.schedules = {3}, .on_task = [&](const TaskPrediction& task) {
                             EXPECT_EQ(task.predicted.size(), task.schedules.size());
                             EXPECT_EQ(task.predicted.size(), task.measured.size());
                             std::vector<double>& all = told[task.task];
                             all.insert(all.end(), task.predicted.begin(), task.predicted.end());
                           }};
  ASSERT_TRUE(
      cross_evaluate(dataset, database.target(), Split::kByModel, train_nonsense, judging).ok());
  ASSERT_EQ(told.size(), 1U);
  const TaskTrials& task = dataset.tasks[1];
  ASSERT_EQ(told.at(task.key).size(), task.trials.size());
  for (size_t i = 0; i < task.trials.size(); ++i) {
    EXPECT_EQ(told.at(task.key)[i],
              static_cast<double>(schedule::hash(task.trials[i].steps) % 1000));
  }
}

// 12 schedules of one task, 10 of the other; rmse is over schedules, per class and over all.
TEST(evaluate, errors_are_means_over_schedules) {
  Database database;
  Dataset dataset = load_dataset(database.store(), "device").value();
  dataset.tasks[1].trials.resize(10);
  const Evaluation found = evaluate(dataset, database.target(), Nonsense()).value();
  ASSERT_EQ(found.classes.size(), 2U);
  double squares = 0;
  for (const Score& one : found.classes) {
    EXPECT_GT(one.rmse, 0);
    EXPECT_LT(one.r_squared, 1);
    squares += one.rmse * one.rmse * static_cast<double>(one.trials);
  }
  EXPECT_EQ(found.all.trials, 22);
  EXPECT_NEAR(found.all.rmse, std::sqrt(squares / 22), 1e-12);
  EXPECT_NEAR(found.all.r_squared, (found.classes[0].r_squared + found.classes[1].r_squared) / 2,
              1e-9 * std::abs(found.all.r_squared));
}

TEST(evaluate, says_when_there_is_too_little_to_judge_by) {
  Database database;
  Dataset dataset = load_dataset(database.store(), "device").value();
  const std::vector<int> counts = {5, 13};
  EXPECT_EQ(
      evaluate(dataset, database.target(), Nonsense(), {.schedules = counts}).status().message(),
      "no task has 13 schedules to judge by, but 12 at most");
  for (TaskTrials& task : dataset.tasks) task.trials.resize(7);
  EXPECT_EQ(evaluate(dataset, database.target(), Nonsense()).status().message(),
            "no task has 8 measured schedules to judge by, but 7 at most");
  EXPECT_EQ(evaluate(Dataset(), database.target(), Nonsense()).status().message(),
            "no task has 8 measured schedules to judge by, but 0 at most");
}

TEST(evaluate, never_judges_by_what_was_trained_on) {
  Database database;
  const Dataset dataset = load_dataset(database.store(), "device").value();
  for (const Split split : {Split::kByModel, Split::kByTask, Split::kWithin}) {
    std::vector<int64_t> trained;
    const Result<Evaluation> evaluation =
        cross_evaluate(dataset, database.target(), split, [&](const Dataset& train) {
          trained.push_back(train.size());
          return cost::make_model("analytic");
        });
    // A fifth of 12 schedules is too few to judge by.
    EXPECT_EQ(evaluation.ok(), split != Split::kWithin);
    int64_t left_out = 0;
    for (const int64_t size : trained) left_out += dataset.size() - size;
    EXPECT_EQ(left_out, dataset.size());
  }
}

TEST(evaluate, knows_its_splits) {
  for (const std::string& name : split_names()) EXPECT_TRUE(parse_split(name).ok());
  EXPECT_FALSE(parse_split("at-random").ok());
}

}  // namespace
}  // namespace hone::learn
