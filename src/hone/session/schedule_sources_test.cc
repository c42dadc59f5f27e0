#include "hone/session/schedule_sources.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "hone/base/file.h"
#include "hone/db/forwarding_store_testing.h"
#include "hone/db/registry.h"
#include "hone/db/roofline_store.h"
#include "hone/graph/import_onnx.h"
#include "hone/graph/test_model.h"
#include "hone/schedule/step.h"
#include "hone/session/shipped_records.h"
#include "hone/space/portable_point.h"

namespace hone {
namespace {

// Two convolutions of one class, on images of `size` points a side.
graph::Graph network(const std::string& name, int64_t size, int64_t channels = 16) {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {1, 8, size, size});
  const graph::AttributeList same = {{"pads", graph::Attribute{std::vector<int64_t>{1, 1, 1, 1}}}};
  model.constant("w0", graph::random_tensor({channels, 8, 3, 3}, rng));
  model.constant("w1", graph::random_tensor({channels, channels, 3, 3}, rng));
  model.node("Conv", {"x", "w0"}, {"a"}, same).node("Relu", {"a"}, {"b"});
  model.node("Conv", {"b", "w1"}, {"c"}, same).node("Relu", {"c"}, {"y"}).output("y");
  graph::Graph graph = model.graph();
  graph.name = name;
  return graph;
}

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  CompileOptions options;
  std::vector<std::unique_ptr<Session>> sessions;
  Fixture() {
    options.records.db = folder.file("hone.db");
    options.records.use_shipped = false;
    options.advanced.cost = "analytic";
    options.target.threads = 1;
  }
  // One of the options and the store as they are now; without a store if there is none yet.
  Session& open(db::Store* opened = nullptr) {
    using Store = SessionOptions::Store;
    Result<std::unique_ptr<Session>> session = Session::open(options, {.opened = opened});
    if (session.status().code() == Code::kNotFound)
      session = Session::open(options, {.store = Store::kNone});
    HONE_ASSERT(session.ok(), session.status().message().c_str());
    return *sessions.emplace_back(*std::move(session));
  }
  ModelTasks tasks(graph::Graph graph) {
    Result<ModelTasks> model = make_tasks(open(), std::move(graph), options);
    HONE_ASSERT(model.ok(), model.status().message().c_str());
    return *std::move(model);
  }
  // What a tuner would have found out: a random point of each task's space.
  std::vector<trial::Record> records(const ModelTasks& model, uint64_t seed = 1) {
    std::vector<trial::Record> records;
    for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
      const space::Space space = space::Space::create(model.dag(g), model.target()).value();
      Rng rng(seed);
      const space::Point point = space.sample(rng);
      trial::Record r;
      r.task = model.tasks.groups[g].key;
      r.kernel_class = model.summaries[g].kernel_class;
      r.task_text = compute::describe(model.dag(g));
      r.device = model.device();
      r.version = "1";
      r.threads = model.threads();
      r.algorithm = space.algorithm(point.sketch);
      r.steps = schedule::to_string(space.steps(point));
      r.accuracy = trial::accuracy_of(r.steps);
      r.decisions = space::to_string(space::to_portable(space, point));
      r.times = {1e-3}, r.centre = r.low = r.high = 1e-3;
      r.verified = true;
      r.model = model.name;
      records.push_back(std::move(r));
    }
    return records;
  }
  void store(const std::vector<trial::Record>& records) {
    const Result<std::unique_ptr<db::Store>> store = db::open_store(options.records.db);
    ASSERT_TRUE(store.ok()) << store.status().message();
    ASSERT_TRUE((*store)->add(records).ok());
  }
  Result<ScheduleSources> load(ModelTasks& model) {
    model.session = &open();
    return load_sources(model, options);
  }
  // The schedules' sources, by kernel.
  std::vector<std::string> sources(ModelTasks& model) {
    Result<ScheduleSources> sources = load(model);
    EXPECT_TRUE(sources.ok()) << sources.status().message();
    const auto steps = choose_schedules(model, *sources, options);
    EXPECT_TRUE(steps.ok()) << steps.status().message();
    std::vector<std::string> found;
    for (size_t g = 0; steps.ok() && g < steps->size(); ++g) {
      EXPECT_TRUE(schedule::replay(model.dag(g), (*steps)[g]).ok());
      found.push_back(model.summaries[g].source);
    }
    return found;
  }
};

TEST(schedule_sources, a_record_of_its_own_comes_first) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  f.store(f.records(model));
  const std::vector<trial::Record> records = f.records(model);
  f.options.records.require_tuned = true;
  for (const std::string& source : f.sources(model)) EXPECT_EQ(source, "stored");
  for (size_t g = 0; g < records.size(); ++g) EXPECT_EQ(model.summaries[g].steps, records[g].steps);
}

// The records of the other model are the best predicted points of its tasks, so that what they
// become is predicted well here, too.
TEST(schedule_sources, schedules_of_another_shape_are_used_if_predicted_well) {
  Fixture f;
  f.store({});
  f.options.records.transfer = "off";
  ModelTasks other = f.tasks(network("other", 24));
  Result<ScheduleSources> nothing = f.load(other);
  ASSERT_TRUE(nothing.ok()) << nothing.status().message();
  const Result<std::vector<schedule::Steps>> best = choose_schedules(other, *nothing, f.options);
  ASSERT_TRUE(best.ok()) << best.status().message();
  std::vector<trial::Record> records = f.records(other);
  for (size_t g = 0; g < records.size(); ++g) {
    const space::Space space = space::Space::create(other.dag(g), other.target()).value();
    const auto point = space.locate((*best)[g]);
    ASSERT_TRUE(point.has_value());
    records[g].steps = schedule::to_string((*best)[g]);
    records[g].accuracy = trial::accuracy_of(records[g].steps);
    records[g].algorithm = space.algorithm(point->sketch);
    records[g].decisions = space::to_string(space::to_portable(space, *point));
  }
  f.store(records);
  ModelTasks model = f.tasks(network("net", 20));
  for (const std::string& source : f.sources(model)) EXPECT_NE(source, "transferred");
  f.options.records.transfer = "pool";
  const std::vector<std::string> sources = f.sources(model);
  EXPECT_GT(std::count(sources.begin(), sources.end(), "transferred"), 0);
  for (const TaskSummary& summary : model.summaries) {
    EXPECT_EQ(summary.from.find("other") != std::string::npos, summary.source == "transferred");
    EXPECT_GT(summary.predicted_seconds, 0);
  }
}

// A schedule of another task that rounds nothing was never measured against one that does.
TEST(schedule_sources, no_trust_in_a_transferred_schedule_beside_one_with_weights_of_16_bits) {
  const schedule::Steps exact = {schedule::CacheRead{"weight", "gemm"}};
  schedule::Steps fast = exact;
  fast.push_back(schedule::Narrow{"weight.cache", DType::kBF16});
  EXPECT_EQ(transfer_trust(exact, fast), 1);
  EXPECT_EQ(transfer_trust(exact, exact), kTransferTrust);
  EXPECT_EQ(transfer_trust(fast, fast), kTransferTrust);
  EXPECT_EQ(transfer_trust(fast, exact), kTransferTrust);
}

TEST(schedule_sources, an_excluded_model_is_unknown) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  std::vector<trial::Record> records = f.records(model);
  for (trial::Record& record : records)
    record.model = "elsewhere";  // the same tasks, another model
  f.store(records);
  for (const std::string& source : f.sources(model)) EXPECT_EQ(source, "stored");
  // A slower record of another model makes the tasks that one's, too.
  for (trial::Record& record : records) {
    record.model = "slower";
    record.times = {2e-3}, record.centre = record.low = record.high = 2e-3;
  }
  f.store(records);
  for (const char* excluded : {"elsewhere", "slower", "net"}) {
    f.options.records.exclude_models = {excluded};
    model = f.tasks(network("net", 20));
    for (const std::string& source : f.sources(model))
      EXPECT_TRUE(source == "default" || source == "predicted") << source;
  }
}

TEST(schedule_sources, the_fastest_shipped_record_is_taken) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  std::vector<trial::Record> slow = f.records(model, 1), fast = f.records(model, 7);
  std::string text;
  for (const trial::Record& record : slow) text += to_shipped_line(record);
  for (trial::Record& record : fast) {
    record.times = {1e-4}, record.centre = record.low = record.high = 1e-4;
    text += to_shipped_line(record);
  }
  std::ofstream(f.folder.file("any.jsonl")) << text;
  f.store({});
  f.options.records.use_shipped = true;
  f.options.records.shipped = f.folder.path();
  for (const std::string& source : f.sources(model)) EXPECT_EQ(source, "shipped");
  for (size_t g = 0; g < fast.size(); ++g) EXPECT_EQ(model.summaries[g].steps, fast[g].steps);
}

// A note that a schedule was tried and failed.
trial::Record failed(trial::Record record, trial::Outcome outcome) {
  record.outcome = outcome;
  record.message = "it failed";
  record.verified = false;
  record.times.clear();
  record.centre = record.low = record.high = 0;
  return record;
}

TEST(schedule_sources, a_shipped_record_that_failed_here_is_not_used) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  const std::vector<trial::Record> records = f.records(model);
  std::string text;
  for (const trial::Record& record : records) text += to_shipped_line(record);
  std::ofstream(f.folder.file("any.jsonl")) << text;
  f.options.records.use_shipped = true;
  f.options.records.shipped = f.folder.path();
  // The first once for whatever reason, the second computes something else.
  f.store({failed(records[0], trial::Outcome::kCrash),
           failed(records[1], trial::Outcome::kWrongAnswer)});
  std::vector<std::string> sources = f.sources(model);
  EXPECT_EQ(sources[0], "shipped");
  EXPECT_NE(sources[1], "shipped");
  EXPECT_NE(model.summaries[1].steps, records[1].steps);
  f.store({failed(records[0], trial::Outcome::kTimeout)});
  sources = f.sources(model);
  EXPECT_NE(sources[0], "shipped");
  EXPECT_NE(model.summaries[0].steps, records[0].steps);
  // Another device's failure says nothing.
  f.options.records.db = f.folder.file("other.db");
  trial::Record elsewhere = failed(records[0], trial::Outcome::kWrongAnswer);
  elsewhere.device = "another";
  f.store({elsewhere});
  sources = f.sources(model);
  EXPECT_EQ(sources[0], "shipped");
}

// Counts how often it is asked for failures.
class CountingStore final : public db::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  Result<std::vector<trial::Record>> query(const db::Filter& filter) override {
    if (filter.failed_only && filter.after_id == 0) ++asked;
    return ForwardingStore::query(filter);
  }
  int asked = 0;
};

TEST(schedule_sources, what_failed_is_asked_once_for_all_kernels_or_never) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  const std::vector<trial::Record> records = f.records(model);
  ASSERT_GT(records.size(), 1U);
  std::string text;
  for (const trial::Record& record : records) text += to_shipped_line(record);
  std::ofstream(f.folder.file("any.jsonl")) << text;
  f.options.records.shipped = f.folder.path();
  f.store(records);
  const auto asked = [&](const std::string& transfer) {
    f.options.records.transfer = transfer;
    CountingStore counting(*f.open().store());
    model.session = &f.open(&counting);
    Result<ScheduleSources> sources = load_sources(model, f.options);
    EXPECT_TRUE(sources.ok() && choose_schedules(model, *sources, f.options).ok());
    EXPECT_TRUE(load_other_tasks(model, f.options, *sources).ok());
    return counting.asked;
  };
  EXPECT_EQ(asked("off"), 0) << "the stored records suffice";
  f.options.records.use_shipped = true;
  EXPECT_EQ(asked("off"), 1);
  EXPECT_EQ(asked("pool"), 1);
}

TEST(schedule_sources, what_fails_while_tuning_is_loaded_before_the_library_is_written) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  const trial::Record record = f.records(model)[0];
  std::ofstream(f.folder.file("any.jsonl")) << to_shipped_line(record);
  f.options.records.use_shipped = true;
  f.options.records.shipped = f.folder.path();
  f.store({});
  Result<ScheduleSources> sources = f.load(model);
  ASSERT_TRUE(sources.ok());
  const auto knows = [&] { return stored_schedule(model, 0, *sources)->has_value(); };
  EXPECT_TRUE(knows());
  f.store({failed(record, trial::Outcome::kWrongAnswer)});
  ASSERT_TRUE(reload_sources(model, *sources).ok());
  EXPECT_FALSE(knows());
}

TEST(schedule_sources, what_must_be_tuned_and_is_not_is_an_error) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  std::vector<trial::Record> records = f.records(model);
  records.pop_back();
  f.store(records);
  f.options.records.require_tuned = true;
  Result<ScheduleSources> sources = f.load(model);
  ASSERT_TRUE(sources.ok());
  const auto steps = choose_schedules(model, *sources, f.options);
  ASSERT_FALSE(steps.ok());
  EXPECT_EQ(steps.status().code(), Code::kNotFound);
  EXPECT_NE(steps.status().message().find("1 of "), std::string::npos) << steps.status().message();
}

TEST(schedule_sources, a_record_that_does_not_apply_any_more_is_passed_over_and_told) {
  for (const bool another : {true, false}) {
    Fixture f;
    ModelTasks model = f.tasks(network("net", 20));
    std::vector<trial::Record> records = f.records(model);
    trial::Record old = records[0];
    old.steps = "a step of long ago";
    old.version = "0";
    old.centre = old.low = old.high = 5e-4;  // faster than all others
    if (another)
      records.push_back(old);
    else
      records[0] = old;
    f.store(records);
    const std::vector<std::string> sources = f.sources(model);
    EXPECT_EQ(sources[0] == "stored", another) << sources[0];
    EXPECT_EQ(model.summaries[0].stale, 1);
    for (size_t g = 1; g < sources.size(); ++g) {
      EXPECT_EQ(sources[g], "stored");
      EXPECT_EQ(model.summaries[g].stale, 0);
    }
    if (another) continue;
    f.options.records.require_tuned = true;
    ModelTasks again = f.tasks(network("net", 20));
    Result<ScheduleSources> loaded = f.load(again);
    ASSERT_TRUE(loaded.ok());
    const auto steps = choose_schedules(again, *loaded, f.options);
    ASSERT_FALSE(steps.ok());
    EXPECT_NE(steps.status().message().find("that still applies (1 had one of another version)"),
              std::string::npos)
        << steps.status().message();
  }
}

TEST(schedule_sources, records_that_come_with_hone_are_known_without_a_database) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  std::string text;
  for (const trial::Record& record : f.records(model)) text += to_shipped_line(record);
  std::ofstream(f.folder.file("any.jsonl")) << text;
  f.options.records.db = f.folder.file("empty.db");
  f.store({});
  f.options.records.use_shipped = true;
  f.options.records.shipped = f.folder.path();
  for (const std::string& source : f.sources(model)) EXPECT_EQ(source, "shipped");
  f.options.records.transfer = "off";  // they are of the same tasks
  for (const std::string& source : f.sources(model)) EXPECT_EQ(source, "shipped");
  f.options.records.exclude_models = {"net"};
  model = f.tasks(network("net", 20));
  for (const std::string& source : f.sources(model)) EXPECT_NE(source, "shipped");
  f.options.records.exclude_models.clear();
  model = f.tasks(network("net", 20));
  f.options.records.use_shipped = false;
  for (const std::string& source : f.sources(model)) EXPECT_NE(source, "shipped");
}

TEST(schedule_sources, weights_that_pass_by_between_two_runs_are_not_timed_warm) {
  Fixture f;
  const ModelTasks few = f.tasks(network("few", 8));
  const search::TaskContext warm = task_context(few, 1);
  EXPECT_EQ(warm.weights, measure::Weights::kWarm);
  const int64_t packed = 3 * own_cache_bytes(few.target());
  EXPECT_NE(task_context(few, 1, packed).weights, measure::Weights::kWarm);
  // Three times what a core has for itself.
  const int64_t channels = static_cast<int64_t>(
      std::sqrt(3.0 * static_cast<double>(own_cache_bytes(few.target())) / 36));
  const ModelTasks many = f.tasks(network("many", 8, channels));
  const search::TaskContext cold = task_context(many, 1);
  EXPECT_NE(cold.weights, measure::Weights::kWarm);
  EXPECT_LT(cold.timing.max_samples, warm.timing.max_samples);
}

TEST(schedule_sources, with_one_source_only_the_model_that_promises_most_is_left) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  f.store(f.records(model));
  f.store(f.records(f.tasks(network("many", 24))));
  std::vector<trial::Record> few = f.records(f.tasks(network("few", 28)));
  few.resize(1);
  f.store(few);
  f.options.records.transfer = "one";
  Result<ScheduleSources> sources = f.load(model);
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  ASSERT_TRUE(load_other_tasks(model, f.options, *sources).ok());
  ASSERT_FALSE(sources->pool.empty());
  for (const trial::Record& record : sources->pool.records()) EXPECT_EQ(record.model, "many");
  for (const std::string& source : f.sources(model)) EXPECT_EQ(source, "stored");
}

TEST(schedule_sources, schedules_of_another_kind_of_device_are_not_used) {
  Fixture f;
  std::vector<trial::Record> records = f.records(f.tasks(network("other", 24)));
  ASSERT_GT(records.size(), 2U);
  records[0].device = "sm_90a-132sm-50M-80G";
  records[1].device = "sm_103-148sm-126M-288G";  // an architecture without a description
  f.store(records);
  ModelTasks model = f.tasks(network("net", 20));
  Result<ScheduleSources> sources = f.load(model);
  ASSERT_TRUE(sources.ok()) << sources.status().message();
  ASSERT_TRUE(load_other_tasks(model, f.options, *sources).ok());
  const std::vector<trial::Record>& pool = sources->pool.records();
  EXPECT_EQ(pool.size(), records.size() - 2);
  for (const trial::Record& record : pool) EXPECT_EQ(record.device, model.device());
}

TEST(schedule_sources, nothing_shipped_and_no_database_is_no_error) {
  Fixture f;
  ModelTasks model = f.tasks(network("net", 20));
  f.options.records.use_db = false;
  for (const std::string& source : f.sources(model))
    EXPECT_TRUE(source == "default" || source == "predicted") << source;
  f.options.records.use_db = true;
  f.options.records.use_shipped = true;
  f.store({});
  f.options.records.shipped = f.folder.file("nothing");  // there is no such folder
  for (const std::string& source : f.sources(model))
    EXPECT_TRUE(source == "default" || source == "predicted") << source;
}

TEST(schedule_sources, modes_are_checked) {
  Fixture f;
  f.options.records.transfer = "some";
  EXPECT_EQ(Session::open(f.options).status().code(), Code::kInvalid);
  f.options.records.transfer = "one";
  f.store({});
  EXPECT_TRUE(Session::open(f.options).ok());
}

// Whoever bounds times and whoever writes the library ask the session for it.
TEST(schedule_sources, a_session_has_the_devices_limits_which_are_read_once) {
  Fixture f;
  f.store({});
  EXPECT_FALSE(f.open().roofline().has_value());
  const trial::Roofline measured{
      .cores = 1, .flops = {1e11, 1e11}, .levels = {{0, 0, 1, {1e10, 1e10}, {1e10, 1e10}}}};
  ASSERT_TRUE(
      db::save_roofline(f.options.records.db, target::device_key(target::host()), measured).ok());
  Session& session = f.open();
  ASSERT_TRUE(session.roofline().has_value());
  EXPECT_EQ(session.roofline()->flops.one, 1e11);
  trial::Roofline other = measured;
  other.flops.one = 2e11;
  ASSERT_TRUE(
      db::save_roofline(f.options.records.db, target::device_key(target::host()), other).ok());
  EXPECT_EQ(session.roofline()->flops.one, 1e11);
  EXPECT_EQ(f.open().roofline()->flops.one, 2e11);
  f.options.records.use_db = false;
  EXPECT_FALSE(f.open().roofline().has_value());
}

// Without records, by trees that are named, as those of this processor may choose otherwise.
void name_trees(Fixture& f) {
  f.options.target.device = "x86-64-avx512";
  f.options.records.use_db = false;
  f.options.advanced.cost = "combined-znver5";
}

// Returns the schedules that are chosen for a model, as text.
std::string chosen_text(Fixture& f, graph::Graph graph) {
  ModelTasks model = f.tasks(std::move(graph));
  Result<ScheduleSources> nothing = load_sources(model, f.options);
  EXPECT_TRUE(nothing.ok()) << nothing.status().message();
  if (!nothing.ok()) return "";
  const auto steps = choose_schedules(model, *nothing, f.options);
  EXPECT_TRUE(steps.ok()) << steps.status().message();
  std::string all;
  if (steps.ok()) {
    for (const schedule::Steps& one : *steps) all += schedule::to_string(one);
  }
  return all;
}

// Of 0.6 million operations, and of 4: only the large one is worth what Winograd's algorithm
// rounds.
TEST(schedule_sources, small_convolutions_are_summed_as_they_are_written) {
  for (const auto& [size, rounds] : {std::pair<int64_t, bool>{23, false}, {60, true}}) {
    Fixture f;
    name_trees(f);
    Rng rng(9);
    graph::TestModel conv;
    conv.input("x", {1, 8, size, size}).constant("w", graph::random_tensor({8, 8, 3, 3}, rng));
    const std::string all =
        chosen_text(f, conv.node("Conv", {"x", "w"}, {"y"}).output("y").graph());
    EXPECT_EQ(all.find("winograd(") != std::string::npos, rounds) << size << ": " << all;
  }
}

// Sums of rows need rows that a smaller run does not have.
TEST(schedule_sources, products_of_ranges_keep_rows_apart) {
  for (const bool varies : {false, true}) {
    Fixture f;
    name_trees(f);
    Rng rng(9);
    graph::TestModel product;
    product.open_input("x", {"rows", "1024"})
        .constant("w", graph::random_tensor({1024, 1024}, rng))
        .node("MatMul", {"x", "w"}, {"y"})
        .output("y");
    const std::string bytes = product.bytes();
    graph::ImportOptions how;
    if (varies)
      how.ranges = {{"x", {{1, 1024, "rows"}, {1024, 1024, ""}}}};
    else
      how.shapes = {{"x", {1024, 1024}}};
    Result<graph::Graph> graph =
        graph::import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", how);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const std::string all = chosen_text(f, *std::move(graph));
    EXPECT_EQ(all.find("strassen(") == std::string::npos, varies) << all;
  }
}

}  // namespace
}  // namespace hone
