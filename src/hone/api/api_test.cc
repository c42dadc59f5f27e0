// The public interface on a small network, on this machine. Only the model's file and the expected
// outputs are made by other means.
#include <gtest/gtest.h>

#include <atomic>

#include "hone/base/file.h"
#include "hone/compile.h"
#include "hone/cost_models.h"
#include "hone/database.h"
#include "hone/device.h"
#include "hone/explain.h"
#include "hone/graph/import_onnx.h"
#include "hone/graph/test_model.h"
#include "hone/inspect.h"
#include "hone/open_model.h"
#include "hone/operators.h"
#include "hone/tune.h"
#include "hone/verify.h"
#include "hone/version.h"

namespace hone {
namespace {

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  std::string model = folder.file("model.onnx"), library = folder.file("model.so");
  graph::TestModel network;
  CompileOptions options;
  Fixture() {
    Rng rng(7);
    network.open_input("x", {"batch", "24"});
    network.constant("w", graph::random_tensor({24, 40}, rng));
    network.node("MatMul", {"x", "w"}, {"a"}).node("Relu", {"a"}, {"b"});
    network.node("Softmax", {"b"}, {"y"}).output("y");
    EXPECT_TRUE(write_file_atomic(model, network.bytes()).ok());
    options.model.shapes["x"] = {6, 24};
    options.records.db = folder.file("hone.db");
    options.target.threads = 1;
    EXPECT_TRUE(Database::open(options.records.db, Database::Access::kCreate).ok());
  }
  // `network` at the shape of the options.
  [[nodiscard]] std::vector<Tensor> expected(const std::vector<Tensor>& inputs) const {
    const graph::Graph graph = graph::import_onnx(model, {.shapes = options.model.shapes}).value();
    return graph::run_plainly(graph, inputs);
  }
  void expect_right(Model& loaded) const {
    ASSERT_EQ(loaded.inputs().size(), 1U);
    EXPECT_EQ(loaded.inputs()[0].name, "x");
    EXPECT_EQ(loaded.inputs()[0].shape, (Shape{6, 24}));
    const Result<std::vector<Tensor>> inputs = arrange_inputs(loaded.inputs(), {}, 3);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    const Result<std::vector<Tensor>> outputs = loaded.run(*inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    ASSERT_EQ(outputs->size(), 1U);
    EXPECT_LT(graph::relative_error((*outputs)[0], expected(*inputs)[0]), 1e-5);
  }
};

TEST(api, a_compiled_model_runs_and_tells_its_times) {
  Fixture f;
  f.options.library.header = true;
  f.options.library.prefix = "small";
  const Result<CompileSummary> summary = compile(f.model, f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_FALSE(summary->tasks.empty());
  EXPECT_TRUE(file_exists(header_path(f.library)));
  EXPECT_TRUE(is_library(f.library).value());
  EXPECT_FALSE(is_library(f.model).value());
  Result<Model> loaded = load(f.library, 1);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  loaded->profile(true);
  f.expect_right(*loaded);
  double seconds = 0;
  for (const StepTime& step : loaded->step_times()) seconds += step.seconds;
  EXPECT_GT(seconds, 0);
}

TEST(api, an_onnx_model_is_opened_and_its_library_goes_away) {
  Fixture f;
  {
    Result<OpenedModel> opened = open_model(f.model, f.options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_TRUE(opened->files.contains(f.model));
    f.expect_right(opened->model);
  }
  ASSERT_TRUE(compile(f.model, f.library, f.options).ok());
  CompileOptions bound;
  bound.model.bind["x"] = Tensor(DType::kF32, {6, 24});
  EXPECT_EQ(open_model(f.library, bound).status().code(), Code::kInvalid);
}

TEST(api, a_tuned_model_is_right_and_progress_is_told) {
  Fixture f;
  int calls = 0;
  TuneOptions options{.compile = f.options, .search = {.budget_seconds = 4, .max_trials = 12}};
  options.on_progress = [&](const TuneProgress& progress) {
    ++calls;
    EXPECT_LE(progress.trials, 12);
  };
  const Result<TuneSummary> summary = tune(f.model, f.library, options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_GT(summary->trials, 0);
  EXPECT_GT(calls, 0);
  Result<Model> loaded = load(f.library, 1);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  f.expect_right(*loaded);
  // A compilation from the same database knows what was measured.
  const Result<CompileSummary> again = compile(f.model, f.library, f.options);
  ASSERT_TRUE(again.ok()) << again.status().message();
  int stored = 0;
  for (const TaskSummary& task : again->tasks) stored += task.source == "stored";
  EXPECT_GT(stored, 0);
}

TEST(api, a_budget_that_is_spent_already_is_no_budget) {
  Fixture f;
  TuneOptions options{.compile = f.options, .search = {.budget_seconds = 0}};
  EXPECT_EQ(tune(f.model, f.library, options).status().code(), Code::kInvalid);
  options.search = {.budget_seconds = 100, .spent_seconds = 100};
  const Result<TuneSummary> summary = tune(f.model, f.library, options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_LT(summary->search_seconds, 1);
}

TEST(api, an_interrupted_job_writes_nothing) {
  Fixture f;
  const std::atomic<bool> interrupted = true;
  f.options.interrupted = &interrupted;
  EXPECT_EQ(compile(f.model, f.library, f.options).status().code(), Code::kCancelled);
  EXPECT_FALSE(file_exists(f.library));
}

TEST(api, bad_input_is_an_error_with_a_code) {
  Fixture f;
  EXPECT_EQ(compile(f.folder.file("none.onnx"), f.library, f.options).status().code(),
            Code::kNotFound);
  EXPECT_EQ(load(f.folder.file("none.so")).status().code(), Code::kNotFound);
  for (std::string* name : {&f.options.target.device, &f.options.target.accuracy,
                            &f.options.records.transfer, &f.options.advanced.cost}) {
    const std::string good = *name;
    *name = "guess";
    EXPECT_FALSE(compile(f.model, f.library, f.options).ok());
    *name = good;
  }
  EXPECT_EQ(check_strategy("guess").code(), Code::kInvalid);
  EXPECT_FALSE(check_database("Postgres://x").ok());
  EXPECT_FALSE(find_device("abacus").ok());
  EXPECT_FALSE(file_exists(f.library));
}

TEST(api, inputs_are_those_given_and_random_ones) {
  const std::vector<ModelTensor> wanted = {{"a", DType::kF32, {2}}, {"b", DType::kF32, {3}}};
  Tensor given(DType::kF32, {2});
  given.set(1, 5);
  const Result<std::vector<Tensor>> inputs = arrange_inputs(wanted, {{"a", given}}, 1);
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  EXPECT_EQ((*inputs)[0].at(1), 5);
  EXPECT_NE((*inputs)[1].at(0), (*inputs)[1].at(1));
  EXPECT_EQ(arrange_inputs(wanted, {{"b", given}}, 1).status().code(), Code::kInvalid);
  EXPECT_EQ(arrange_inputs(wanted, {{"c", given}}, 1).status().code(), Code::kInvalid);
}

TEST(api, a_model_is_inspected_explained_and_verified) {
  Fixture f;
  std::vector<std::string> passes;
  InspectOptions looking{.compile = f.options, .dot = true};
  looking.on_change = [&](const PassChange& change) { passes.push_back(change.pass); };
  const Result<Inspection> inspection = inspect(f.model, looking);
  ASSERT_TRUE(inspection.ok()) << inspection.status().message();
  ASSERT_FALSE(inspection->distinct.empty());
  EXPECT_EQ(inspection->distinct.back().result, (Shape{6, 40}));
  EXPECT_GE(inspection->flops, 2.0 * 6 * 24 * 40);
  EXPECT_EQ(inspection->weight_bytes, 4 * 24 * 40);
  EXPECT_NE(inspection->dot.find("digraph"), std::string::npos);
  ASSERT_FALSE(passes.empty());
  EXPECT_EQ(passes[0], "import");

  ExplainOptions explaining{.compile = f.options, .task = "1"};
  explaining.measure = ExplainOptions::Measure::kNever;
  const Result<Explanation> explanation = explain(f.model, explaining);
  ASSERT_TRUE(explanation.ok()) << explanation.status().message();
  EXPECT_EQ(explanation->task.kernel_class, inspection->distinct[0].summary.kernel_class);
  EXPECT_FALSE(explanation->loops.empty());
  explaining.task = "99";
  EXPECT_FALSE(explain(f.model, explaining).ok());

  const Result<VerifyReport> report = verify(f.model, {.compile = f.options});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->compared, 0);
  EXPECT_TRUE(report->divergences.empty());
}

TEST(api, a_database_tells_what_was_measured_and_can_be_copied) {
  Fixture f;
  const std::string& path = f.options.records.db;
  const TuneOptions options{.compile = f.options,
                            .search = {.budget_seconds = 4, .max_trials = 12}};
  ASSERT_TRUE(tune(f.model, f.library, options).ok());
  Result<Database> database = Database::open(path, Database::Access::kUpdate);
  ASSERT_TRUE(database.ok()) << database.status().message();
  std::vector<TrialInfo> trials;
  const auto keep = [&](TrialInfo&& trial) {
    trials.push_back(std::move(trial));
    return ok_status();
  };
  ASSERT_TRUE(database->for_each({}, keep).ok());
  ASSERT_FALSE(trials.empty());
  const auto all = static_cast<int64_t>(trials.size());
  EXPECT_EQ(trials[0].device, find_device()->key);
  const uint64_t task = trials[0].task;
  trials.clear();
  ASSERT_TRUE(database->for_each({.task = task}, keep).ok());
  EXPECT_FALSE(trials.empty());
  for (const TrialInfo& trial : trials) EXPECT_EQ(trial.task, task);

  const std::string lines = f.folder.file("trials.jsonl");
  EXPECT_EQ(database->write_lines(lines, {}).value(), all);
  Result<Database> copy = Database::open(f.folder.file("copy.db"), Database::Access::kCreate);
  ASSERT_TRUE(copy.ok()) << copy.status().message();
  EXPECT_EQ(copy->read_lines(lines)->added, all);
  EXPECT_EQ(copy->merge(*database)->known, all);
  const Result<DatabaseProblems> problems = copy->verify();
  ASSERT_TRUE(problems.ok()) << problems.status().message();
  EXPECT_EQ(problems->trials, all);
  EXPECT_TRUE(problems->problems.empty());
  EXPECT_EQ(copy->tidy({.keep = 1, .dry_run = true})->trials, all);
  EXPECT_GT(copy->tidy({.keep = 1})->removed, 0);
  EXPECT_LT(copy->tidy({.keep = 1})->trials, all);
  EXPECT_EQ(Database::open(f.folder.file("none.db")).status().code(), Code::kNotFound);
}

TEST(api, this_machine_and_what_can_be_compiled_are_told) {
  const std::vector<std::string> names = device_names();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names[0], "host");
  for (const std::string& name : names) {
    const Result<Device> device = find_device(name);
    if (!device.ok() && (name == "cuda" || name == "opencl")) continue;  // none is here
    ASSERT_TRUE(device.ok()) << device.status().message();
    EXPECT_EQ(device->name, name);
    EXPECT_EQ(device->gpu.has_value(), name.starts_with("cuda") || name.starts_with("opencl"));
    EXPECT_GT(device->gpu ? device->gpu->flops : device->core_flops, 0);
  }
  const Roofline roofline{.cores = 2,
                          .flops = {1e11, 2e11},
                          .fork_join = {},
                          .levels = {{0, 0, 2, {1e10, 1e10}, {1e10, 1e10}}}};
  EXPECT_DOUBLE_EQ(least_time(2e11, 1, roofline, 2).seconds, 1);
  EXPECT_EQ(least_time(1, 1e10, roofline, 1).what, "memory");
  int convolutions = 0;
  for (const OperatorInfo& op : operators()) convolutions += op.name == "Conv";
  EXPECT_EQ(convolutions, 1);
  EXPECT_LT(opsets().since, opsets().until);
  EXPECT_FALSE(cost_model_names().empty());
  EXPECT_FALSE(version().empty());
  EXPECT_GT(abi_version(), 0);
}

}  // namespace
}  // namespace hone
