// The public interface of data sets, training and judging, with schedules that are measured on this
// machine.
#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/dataset.h"
#include "hone/evaluate.h"
#include "hone/graph/test_model.h"
#include "hone/train.h"

namespace hone {
namespace {

constexpr int kSchedules = 12;

// A data set of two products of matrices.
struct Measured {
  TempDir folder = std::move(TempDir::create()).value();
  std::string model = folder.file("products.onnx");
  int calls = 0;  // of the progress callback
  DatasetOptions options{.threads = {1}, .schedules = kSchedules, .db = folder.file("data.db")};
  DatasetTasks tasks;
  Measured() {
    Rng rng(7);
    graph::TestModel network;
    network.input("x", {16, 24}).constant("w", graph::random_tensor({24, 40}, rng));
    network.constant("v", graph::random_tensor({40, 32}, rng));
    network.node("MatMul", {"x", "w"}, {"a"}).node("Relu", {"a"}, {"b"});
    network.node("MatMul", {"b", "v"}, {"y"}).output("y");
    EXPECT_TRUE(write_file_atomic(model, network.bytes()).ok());
    options.on_progress = [this](const DatasetProgress&) { ++calls; };
  }
  void make() {
    Result<DatasetTasks> found = collect_tasks({model}, options);
    ASSERT_TRUE(found.ok()) << found.status().message();
    tasks = std::move(found).value();
    const Result<DatasetSummary> made = make_dataset(tasks, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(made->complete);
  }
  [[nodiscard]] EvaluateOptions judging() const {
    return {.db = options.db, .device = "host/1", .on_task = {}};
  }
};

TEST(api, a_data_set_is_made_described_and_copied) {
  Measured f;
  ASSERT_NO_FATAL_FAILURE(f.make());
  ASSERT_GE(f.tasks.tasks.size(), 2U);
  EXPECT_EQ(f.tasks.variants.size(), 1U);
  EXPECT_EQ(f.tasks.tasks[0].uses, (std::vector<std::pair<size_t, int>>{{0, 1}}));
  EXPECT_GT(f.tasks.tasks[0].flops, 0);
  EXPECT_GT(f.calls, 0);
  EXPECT_FALSE(bounds_source().empty());
  const Result<DatasetStatistics> stat = dataset_statistics(f.options.db);
  ASSERT_TRUE(stat.ok()) << stat.status().message();
  const auto tasks = std::ssize(f.tasks.tasks);
  EXPECT_EQ(stat->all.tasks, tasks);
  EXPECT_EQ(stat->combinations, tasks);
  EXPECT_GE(stat->schedules, tasks * kSchedules / 2);
  EXPECT_EQ(stat->all.records, stat->models.begin()->second.records);
  EXPECT_GT(stat->worst_over_best, 1);

  for (const char* name : {"copy.npz", "copy.jsonl"}) {
    const std::string file = f.folder.file(name), copy = file + ".db";
    const Result<ExportedDataset> exported = export_dataset(f.options.db, file);
    ASSERT_TRUE(exported.ok()) << exported.status().message();
    EXPECT_EQ(exported->records, stat->all.records);
    EXPECT_EQ(import_dataset(file, copy)->added, exported->records);
    EXPECT_EQ(import_dataset(file, copy)->known, exported->records);
  }
}

TEST(api, a_model_is_trained_on_a_part_of_a_data_set_and_judged_on_another) {
  Measured f;
  ASSERT_NO_FATAL_FAILURE(f.make());
  const std::string split = f.folder.file("split.json"), list = f.folder.file("list.json"),
                    model = f.folder.file("my.model");
  const Result<SplitSizes> sizes =
      split_dataset(f.options.db, split, {.by = SplitBy::kTask, .fraction = 0.5, .validation = 0});
  ASSERT_TRUE(sizes.ok()) << sizes.status().message();
  EXPECT_GT(sizes->train, 0);
  EXPECT_GT(sizes->test, 0);
  const Result<TaskList> few = choose_representatives(f.options.db, {.count = 1});
  ASSERT_TRUE(few.ok()) << few.status().message();
  ASSERT_TRUE(write_task_list(list, *few).ok());
  EXPECT_EQ(read_task_list(list)->keys(), few->keys());
  EXPECT_EQ(few->keys().size(), 1U);

  int64_t told = 0;
  EvaluateOptions judging = f.judging();
  judging.except = few->keys();
  judging.networks = {f.model};
  judging.on_task = [&](const TaskPrediction& task) {
    EXPECT_FALSE(few->keys().contains(task.task));
    told += std::ssize(task.predicted);
  };
  const Result<Evaluation> analytic = evaluate(judging);
  ASSERT_TRUE(analytic.ok()) << analytic.status().message();
  EXPECT_EQ(analytic->all.trials, told);
  EXPECT_EQ(analytic->networks.at(0).network, f.tasks.variants[0].model);
  EXPECT_TRUE(analytic->files.contains(f.model));

  TrainOptions training{.data = {.db = f.options.db, .devices = {"host/1"}, .split_file = split},
                        .options = "trees=5,leaves=4",
                        .net = {.on_progress = {}}};
  const Result<TrainSummary> trained = train(model, training);
  if (trained.status().code() == Code::kUnsupported) GTEST_SKIP() << trained.status().message();
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  EXPECT_EQ(trained->kind, "combined");
  EXPECT_EQ(trained->trees, 5);
  EXPECT_EQ(trained->schedules, sizes->train);
  judging = f.judging();
  judging.cost = model;
  judging.split_file = split;
  const Result<Evaluation> judged = evaluate(judging);
  ASSERT_TRUE(judged.ok()) << judged.status().message();
  EXPECT_EQ(judged->all.trials, sizes->test);
  EXPECT_EQ(judged->card.at("schedules"), std::to_string(sizes->train));
}

TEST(api, wrong_requests_of_the_laboratory_are_errors) {
  Measured f;
  const std::string none = f.folder.file("none.db"), model = f.folder.file("my.model");
  EXPECT_EQ(dataset_statistics(none).status().code(), Code::kNotFound);
  EXPECT_EQ(evaluate({.db = none, .on_task = {}}).status().code(), Code::kNotFound);
  EXPECT_EQ(read_task_list(none).status().code(), Code::kNotFound);
  EXPECT_EQ(read_task_list(f.model).status().code(), Code::kInvalid);
  EXPECT_EQ(import_dataset(f.model, none).status().code(), Code::kInvalid);
  EXPECT_EQ(parse_split_by("size").status().code(), Code::kInvalid);
  EXPECT_FALSE(file_exists(none));
  DatasetOptions options = f.options;
  options.devices.clear();
  EXPECT_EQ(collect_tasks({f.model}, options).status().code(), Code::kInvalid);
  EXPECT_EQ(make_dataset({}, f.options).status().code(), Code::kInvalid);

  const auto trained = [&](const std::string& output, const TrainOptions& wrong) {
    return std::string(train(output, wrong).status().message());
  };
  TrainOptions training{.data = {.db = none}, .cost = "guess", .net = {.on_progress = {}}};
  EXPECT_NE(trained(model, training).find("'guess' cannot be trained"), std::string::npos);
  ASSERT_FALSE(train_choices().nets.empty());
  training.cost = train_choices().nets[0].name;
  EXPECT_NE(trained(model, training).find("expected a name ending in .onnx"), std::string::npos);
  training.net.adapt = "head";
  EXPECT_NE(trained("my.onnx", training).find("expected --from"), std::string::npos);
  EXPECT_EQ(train_state_file("my.onnx"), "my.onnx.state");

  EvaluateOptions judging = f.judging();
  judging.booster = "xgboost";
  EXPECT_EQ(evaluate(judging).status().message(),
            "--booster: for fitting trees, but --cost analytic is judged as it is");
  judging.split = "guess";
  EXPECT_NE(evaluate(judging).status().message().find("unknown split 'guess'"), std::string::npos);
  judging = f.judging();
  judging.schedules = {0};
  EXPECT_EQ(evaluate(judging).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hone
