// The facade on a small network, on this machine; the program is its own worker (see main).
#include "hone/commands/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "hone/backend/cpu/code_cache.h"
#include "hone/base/file.h"
#include "hone/commands/in_model.h"
#include "hone/db/registry.h"
#include "hone/graph/test_model.h"
#include "hone/machine/null.h"
#include "hone/machine/quick_machine_testing.h"
#include "hone/machine/time_in_turns.h"
#include "hone/schedule/step.h"
#include "hone/session/network_choices.h"

namespace hone {
namespace {

graph::Attribute ints(std::vector<int64_t> values) { return graph::Attribute{std::move(values)}; }

// Convolutions with a residual addition, two of them alike, pooling and a matrix product.
graph::Graph small_network() {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {1, 3, 17, 17});
  const graph::AttributeList same = {{"pads", ints({1, 1, 1, 1})}};
  model.constant("w0", graph::random_tensor({16, 3, 3, 3}, rng));
  model.node("Conv", {"x", "w0"}, {"a"}, same).node("Relu", {"a"}, {"b"});
  for (const char* name : {"1", "2"}) {
    const std::string n = name;
    model.constant("w" + n, graph::random_tensor({16, 16, 3, 3}, rng, -0.3, 0.3));
  }
  model.node("Conv", {"b", "w1"}, {"c"}, same).node("Relu", {"c"}, {"d"});
  model.node("Conv", {"d", "w2"}, {"e"}, same)
      .node("Add", {"e", "b"}, {"f"})
      .node("Relu", {"f"}, {"g"});
  model.node("MaxPool", {"g"}, {"h"}, {{"kernel_shape", ints({2, 2})}, {"strides", ints({2, 2})}});
  model.node("GlobalAveragePool", {"h"}, {"i"}).node("Flatten", {"i"}, {"j"});
  model.constant("wf", graph::random_tensor({16, 10}, rng))
      .constant("bf", graph::random_tensor({10}, rng));
  model.node("Gemm", {"j", "wf", "bf"}, {"y"}).output("y");
  return model.graph();
}

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  graph::Graph graph = small_network();
  std::string library = folder.file("model.so");
  machine::QuickMachine machine;
  JobHooks hooks;
  TuneOptions options;
  Fixture() {
    hooks.machine = &machine;
    options.compile.advanced.hooks = &hooks;
    options.compile.records.db = folder.file("hone.db");
    options.compile.target.threads = 1;
    options.compile.advanced.cost = "analytic";
    options.search.budget_seconds = 20;  // a busy machine needs them for as many trials
    options.search.max_trials = 40;
  }
  void expect_right_outputs() {
    Rng rng(9);
    const std::vector<Tensor> inputs = {graph::random_tensor({1, 3, 17, 17}, rng)};
    const std::vector<Tensor> expected = graph::run_plainly(graph, inputs);
    for (const int threads : {1, 2}) {
      Result<Model> model = load(library, threads);
      ASSERT_TRUE(model.ok()) << model.status().message();
      const Result<std::vector<Tensor>> outputs = model->run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      EXPECT_LT(graph::relative_error((*outputs)[0], expected[0]), 1e-5);
    }
  }
};

// Four branches of one value, written into one result: all are ready when the first starts, take
// longer than a fork and a join, and have kernels of one phase.
graph::Graph branches() {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {1, 32, 28, 28});
  std::vector<std::string> parts;
  for (const char* name : {"0", "1", "2", "3"}) {
    const std::string n = name;
    model.constant("w" + n, graph::random_tensor({32, 32, 1, 1}, rng));
    model.node("Conv", {"x", "w" + n}, {"a" + n});
    parts.push_back("b" + n);
  }
  for (const std::string& part : parts) {
    model.node("MaxPool", {"a" + part.substr(1)}, {part},
               {{"kernel_shape", ints({3, 3})}, {"pads", ints({1, 1, 1, 1})}});
  }
  model.node("Concat", parts, {"c"}, {{"axis", graph::Attribute{int64_t{1}}}});
  model.node("GlobalAveragePool", {"c"}, {"y"}).output("y").output("c");
  return model.graph();
}

TEST(facade, kernels_that_do_not_need_each_other_run_together_to_the_same_bits) {
  Fixture f;
  f.graph = branches();
  f.options.compile.records.use_db = false;
  f.options.compile.target.threads = 2;
  Rng rng(9);
  const std::vector<Tensor> inputs = {graph::random_tensor({1, 32, 28, 28}, rng)};
  const std::vector<Tensor> expected = graph::run_plainly(f.graph, inputs);
  std::vector<std::vector<Tensor>> results;
  for (const bool together : {false, true}) {
    f.options.compile.advanced.skip_passes.assign(together ? 0 : 1, "run_together");
    const Result<CompileSummary> summary = compile(f.graph, f.library, f.options.compile);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_GE(summary->calls, 9);
    EXPECT_EQ(summary->turns < summary->calls, together);
    for (const int threads : {1, 2, 0}) {
      Result<Model> model = load(f.library, threads);
      ASSERT_TRUE(model.ok()) << model.status().message();
      for (int round = 0; round < 20; ++round) {
        Result<std::vector<Tensor>> outputs = model->run(inputs);
        ASSERT_TRUE(outputs.ok()) << outputs.status().message();
        results.push_back(*std::move(outputs));
      }
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(graph::relative_error(results[0][i], expected[i]), 1e-4);
    const auto bytes = static_cast<size_t>(expected[i].bytes());
    for (const std::vector<Tensor>& result : results)
      EXPECT_EQ(std::memcmp(result[i].data(), results[0][i].data(), bytes), 0);
  }
}

TEST(facade, one_thread_or_a_bound_of_memory_that_is_met_changes_no_arena) {
  Fixture f;
  f.options.compile.records.use_db = false;
  f.options.compile.target.threads = 2;
  f.options.compile.advanced.skip_passes = {"run_together"};
  const Result<CompileSummary> apart = compile(branches(), f.library, f.options.compile);
  ASSERT_TRUE(apart.ok()) << apart.status().message();
  f.options.compile.advanced.skip_passes.clear();
  f.options.compile.target.max_memory = apart->memory_bytes + 4096;
  const Result<CompileSummary> bounded = compile(branches(), f.library, f.options.compile);
  ASSERT_TRUE(bounded.ok()) << bounded.status().message();
  EXPECT_LE(bounded->arena_bytes, apart->arena_bytes);
  f.options.compile.target.max_memory = 0;
  f.options.compile.target.threads = 1;
  const Result<CompileSummary> alone = compile(branches(), f.library, f.options.compile);
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(alone->turns, alone->calls);
}

TEST(facade, strict_accuracy_keeps_to_the_models_own_sums) {
  Rng rng(3);
  graph::TestModel model;
  model.input("x", {1, 32, 32, 32}).constant("w", graph::random_tensor({64, 32, 3, 3}, rng));
  model.node("Conv", {"x", "w"}, {"y"}, {{"pads", ints({1, 1, 1, 1})}}).output("y");
  Fixture f;
  const auto algorithms = [&](const std::string& accuracy) {
    f.options.compile.target.accuracy = accuracy;
    const Result<CompileSummary> summary = compile(model.graph(), f.library, f.options.compile);
    EXPECT_TRUE(summary.ok()) << summary.status().message();
    std::set<std::string> names;
    if (!summary.ok()) return names;
    for (const TaskSummary& task : summary->tasks) {
      const Result<schedule::Steps> steps = schedule::parse_steps(task.steps);
      EXPECT_TRUE(steps.ok()) << steps.status().message();
      if (steps.ok()) names.insert(schedule::algorithm_of(*steps));
    }
    return names;
  };
  f.options.compile.records.use_db = false;
  EXPECT_EQ(algorithms("strict"), std::set<std::string>{"direct"});
  EXPECT_GT(algorithms("default").size(), 1U);
  f.options.compile.records.use_db = true;
  // What the default stored is not served to a stricter build.
  f.graph = model.graph();
  f.options.search.max_trials = 30;
  ASSERT_TRUE(tune(f.graph, f.library, f.options).ok());
  EXPECT_EQ(algorithms("strict"), std::set<std::string>{"direct"});
  f.options.compile.target.accuracy = "rough";
  EXPECT_EQ(compile(f.graph, f.library, f.options.compile).status().message(),
            "accuracy 'rough', expected strict, default or fast");
}

TEST(facade, compiles_without_measuring) {
  Fixture f;
  f.options.compile.records.use_db = false;
  f.options.compile.library.header = true;
  const Result<CompileSummary> summary = compile(f.graph, f.library, f.options.compile);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_GT(summary->bytes, 10'000);
  for (const TaskSummary& task : summary->tasks) {
    EXPECT_TRUE(task.source == "default" || task.source == "predicted") << task.source;
  }
  EXPECT_TRUE(file_exists(f.folder.file("model.h")));
  f.expect_right_outputs();
}

TEST(facade, the_same_model_gives_the_same_bytes) {
  Fixture f;
  f.options.compile.records.use_db = false;
  ASSERT_TRUE(compile(f.graph, f.library, f.options.compile).ok());
  const Result<std::string> first = read_file(f.library);
  ASSERT_TRUE(compile(f.graph, f.library, f.options.compile).ok());
  const Result<std::string> second = read_file(f.library);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(*first == *second);
}

// The same kernels, those that were measured as tune chose them inside the model.
void expect_as_tuned(const std::vector<TaskSummary>& compiled,
                     const std::vector<TaskSummary>& tuned) {
  ASSERT_EQ(compiled.size(), tuned.size());
  for (size_t i = 0; i < tuned.size(); ++i) {
    EXPECT_EQ(compiled[i].name, tuned[i].name);
    if (compiled[i].source == "stored") {
      EXPECT_EQ(compiled[i].steps, tuned[i].steps);
    }
  }
}

TEST(facade, tunes_and_then_compiles_with_what_was_stored) {
  Fixture f;
  int calls = 0;
  f.options.on_progress = [&](const TuneProgress& progress) { calls += progress.trials > 0; };
  const Result<TuneSummary> summary = tune(f.graph, f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const TuneSeconds& spent = summary->spent;
  EXPECT_GT(spent.measuring, 0);
  const double all = spent.measuring + spent.compiling + spent.choosing + spent.packing +
                     spent.checking + spent.waiting + spent.other;
  EXPECT_NEAR(all, summary->compile.seconds, 0.01 * summary->compile.seconds);
  EXPECT_GT(summary->trials, 10);
  EXPECT_GT(calls, 2);
  const InModelSummary& in_model = summary->in_model;
  EXPECT_EQ(in_model.skipped.empty(), in_model.compared > 0) << in_model.skipped;
  EXPECT_LE(in_model.changed, in_model.compared);
  f.expect_right_outputs();

  Result<std::unique_ptr<db::Store>> store = db::open_store(f.options.compile.records.db);
  ASSERT_TRUE(store.ok());
  const Result<std::vector<trial::Record>> records = (*store)->query({});
  ASSERT_TRUE(records.ok());
  EXPECT_GE(static_cast<int>(records->size()), summary->trials);

  const int64_t compilations = backend::cpu::code_cache().counts().compiled;
  const Result<CompileSummary> compiled = compile(f.graph, f.library, f.options.compile);
  ASSERT_TRUE(compiled.ok());
  int stored = 0;
  for (const TaskSummary& task : compiled->tasks) stored += task.source == "stored";
  EXPECT_GT(stored, 3);
  expect_as_tuned(compiled->tasks, summary->compile.tasks);
  EXPECT_LE(backend::cpu::code_cache().counts().compiled - compilations,
            2 * (std::ssize(compiled->tasks) - stored))
      << "what was measured is not compiled again";
  f.expect_right_outputs();
}

// Which kernels there are is not the guide's to say.
TEST(facade, what_another_model_guided_is_compiled_without_it) {
  Fixture f;
  f.options.compile.advanced.cost = "auto";
  f.options.search.guide = "analytic";
  const Result<TuneSummary> summary = tune(f.graph, f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const Result<CompileSummary> compiled = compile(f.graph, f.library, f.options.compile);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  expect_as_tuned(compiled->tasks, summary->compile.tasks);
  f.options.search.guide = "guess";
  const Status unknown = tune(f.graph, f.library, f.options).status();
  EXPECT_NE(unknown.message().find("guess"), std::string::npos) << unknown.message();
}

// Of each kernel another schedule than the fastest, as if it were the faster one in the network.
TEST(facade, what_was_chosen_for_a_network_holds_in_its_next_tuning) {
  Fixture f;
  ASSERT_TRUE(tune(f.graph, f.library, f.options).ok());
  const std::unique_ptr<db::Store> store = db::open_store(f.options.compile.records.db).value();
  const auto session = Session::open(f.options.compile, {.opened = store.get()}).value();
  const ModelTasks model = make_tasks(*session, f.graph, f.options.compile).value();
  const auto bests = [&](size_t group) {
    return best_stored(model, *store, model.tasks.groups[group].key).value();
  };
  std::map<size_t, std::pair<std::string, std::string>> wanted;  // by group: best, chosen
  std::vector<db::Choice> choices;
  for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
    const std::vector<trial::Record> records = bests(g);
    for (const trial::Record& record : records) {
      if (record.steps == records[0].steps) continue;
      choices.push_back({records[0].id, record.id});
      wanted[g] = {records[0].steps, record.steps};
      break;
    }
  }
  ASSERT_GT(wanted.size(), 2U);
  ASSERT_TRUE(store->choose(network_key(model), choices).ok());
  const Result<CompileSummary> compiled = compile(f.graph, f.library, f.options.compile);
  ASSERT_TRUE(compiled.ok());
  for (const auto& [g, steps] : wanted) EXPECT_EQ(compiled->tasks[g].steps, steps.second);

  std::atomic<bool> interrupted = false;  // then nothing is compared inside the model
  f.options.interrupted = &interrupted;
  f.options.on_progress = [&](const TuneProgress& progress) {
    if (progress.trials > 30) interrupted = true;
  };
  const Result<TuneSummary> again = tune(f.graph, f.library, f.options);
  ASSERT_TRUE(again.ok()) << again.status().message();
  int held = 0;
  for (const auto& [g, steps] : wanted) {
    if (bests(g)[0].steps != steps.first) continue;  // a faster one was found
    const TaskSummary& task = again->compile.tasks[g];
    if (task.untuned_seconds > kCloseOtherData * task.seconds) continue;  // not that close
    EXPECT_EQ(task.steps, steps.second);
    ++held;
  }
  EXPECT_GT(held, 0);
  f.expect_right_outputs();
}

TEST(facade, libraries_are_timed_in_turns) {
  Fixture f;
  f.options.compile.records.use_db = false;
  ASSERT_TRUE(compile(f.graph, f.library, f.options.compile).ok());
  const auto times = machine::time_in_turns({f.library, f.library}, 1, 0);
  ASSERT_TRUE(times.ok()) << times.status().message();
  ASSERT_EQ(times->size(), 2U);
  for (const std::vector<double>& seconds : *times) {
    EXPECT_EQ(std::ssize(seconds), machine::kLeastRounds - 1);
    for (const double second : seconds) EXPECT_GT(second, 0);
  }
  EXPECT_FALSE(machine::time_in_turns({f.library, f.folder.file("none.so")}, 1, 0).ok());
}

// The devices of the records that a store has.
std::set<std::string> devices_of(const std::string& path) {
  const std::unique_ptr<db::Store> store = db::open_store(path).value();
  std::set<std::string> devices;
  const std::vector<trial::Record> records = store->query({}).value();
  for (const trial::Record& record : records) devices.insert(record.device);
  return devices;
}

TEST(facade, tunes_on_a_second_machine_with_other_limits) {
  target::Target target = target::host();
  target.cpu().cores = 1;
  for (target::Cache& cache : target.cpu().caches) cache.bytes /= 2;
  const machine::QuickMachine machine(target);
  Fixture f;
  f.hooks.machine = &machine;
  f.options.compile.target.threads = 0;  // all of the machine
  const Result<TuneSummary> summary = tune(f.graph, f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_GT(summary->trials, 0);
  EXPECT_EQ(devices_of(f.options.compile.records.db), std::set{target::device_key(target)});
  f.expect_right_outputs();
  // Measurements of that machine are known there, not on the host.
  const Result<CompileSummary> there = compile(f.graph, f.library, f.options.compile);
  ASSERT_TRUE(there.ok()) << there.status().message();
  const auto from = [](const std::vector<TaskSummary>& tasks, const std::string& source) {
    return std::ranges::count(tasks, source, &TaskSummary::source);
  };
  EXPECT_GT(from(there->tasks, "stored"), 0);
  f.hooks.machine = &f.machine;
  const Result<CompileSummary> here = compile(f.graph, f.library, f.options.compile);
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_EQ(from(here->tasks, "stored"), 0);
}

TEST(facade, tunes_on_a_machine_without_a_device) {
  const machine::NullMachine machine(target::host(), [](const measure::Job& job) {
    return 1e-6 * static_cast<double>(job.executable.code.str().size());
  });
  Fixture f;
  f.hooks.machine = &machine;
  const Result<TuneSummary> summary = tune(f.graph, f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_GT(summary->trials, 0);
  EXPECT_EQ(summary->model_seconds, 0);
  EXPECT_EQ(summary->not_compared, "a null machine runs no models");
  f.expect_right_outputs();
}

TEST(facade, an_interrupted_run_still_writes_the_library) {
  Fixture f;
  std::atomic<bool> interrupted = false;
  f.options.search.budget_seconds = 250;
  f.options.search.max_trials = 0;
  f.options.interrupted = &interrupted;
  f.options.on_progress = [&](const TuneProgress& progress) {
    if (progress.trials > 0) interrupted = true;
  };
  const Result<TuneSummary> summary = tune(f.graph, f.library, f.options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_TRUE(summary->interrupted);
  EXPECT_EQ(summary->in_model.skipped, "interrupted");
  f.expect_right_outputs();
}

TEST(facade, bad_input_is_refused_before_any_work) {
  Fixture f;
  f.options.search.budget_seconds = 0;
  EXPECT_EQ(tune(f.graph, f.library, f.options).status().code(), Code::kInvalid);
  f.options.search.budget_seconds = 1;
  EXPECT_EQ(tune(f.graph, f.folder.path() + "/none/model.so", f.options).status().code(),
            Code::kNotFound);
  EXPECT_EQ(compile(f.folder.file("none.onnx"), f.library, f.options.compile).status().code(),
            Code::kNotFound);
  f.options.compile.target.device = "abacus";
  EXPECT_FALSE(compile(f.graph, f.library, f.options.compile).ok());
  f.options.compile.target.device = "host";
  f.options.compile.advanced.cost = "guess";
  EXPECT_EQ(compile(f.graph, f.library, f.options.compile).status().code(), Code::kInvalid);
  f.options.compile.advanced.cost = "analytic";
  f.options.search.strategy = "guess";
  EXPECT_EQ(tune(f.graph, f.library, f.options).status().code(), Code::kInvalid);
  EXPECT_FALSE(file_exists(f.library));
}

}  // namespace
}  // namespace hone
