#include "hone/commands/transfer_report.h"

#include <gtest/gtest.h>

#include "hone/commands/null_job_testing.h"
#include "hone/db/registry.h"
#include "hone/schedule/step.h"
#include "hone/session/schedule_sources.h"
#include "hone/space/portable_point.h"

namespace hone {
namespace {

using testing::network;

struct Fixture : testing::NullJob {
  TransferReportOptions options;
  Fixture() { options.compile = NullJob::options(); }
  // Two records of each task of a model, ten seconds apart.
  void store(graph::Graph graph, const std::string& name) {
    const auto session =
        Session::open(options.compile, {.store = SessionOptions::Store::kNone}).value();
    const Result<ModelTasks> model = make_tasks(*session, std::move(graph), options.compile);
    ASSERT_TRUE(model.ok()) << model.status().message();
    std::vector<trial::Record> records;
    for (size_t g = 0; g < model->tasks.groups.size(); ++g) {
      const space::Space space = space::Space::create(model->dag(g), model->target()).value();
      for (int i = 0; i < 2; ++i) {
        Rng rng(static_cast<uint64_t>(i) + g);
        const space::Point point = space.sample(rng);
        trial::Record r;
        r.task = model->tasks.groups[g].key;
        r.kernel_class = model->summaries[g].kernel_class;
        r.task_text = compute::describe(model->dag(g));
        r.device = model->device();
        r.version = "1";
        r.threads = 1;
        r.algorithm = space.algorithm(point.sketch);
        r.steps = schedule::to_string(space.steps(point));
        r.accuracy = trial::accuracy_of(r.steps);
        r.decisions = space::to_string(space::to_portable(space, point));
        r.times = {1e-3}, r.centre = r.low = r.high = 1e-3 * (1 + i);
        r.verified = true;
        r.unix_time = 1'700'000'000 + 10 * i;
        r.model = name;
        records.push_back(std::move(r));
      }
    }
    const Result<std::unique_ptr<db::Store>> store = db::open_store(options.compile.records.db);
    ASSERT_TRUE(store.ok()) << store.status().message();
    ASSERT_TRUE((*store)->add(records).ok());
  }
};

// The target, tuned, and one source of schedules for it.
struct WithSource : Fixture {
  WithSource() {
    store(network("target", 20), "target");
    store(network("first", 24), "first");
    options.from = {"first"};
  }
  // What a report measures.
  int count() {
    measured = 0;
    const Status status = transfer_report(network("target", 20), options).status();
    EXPECT_TRUE(status.ok()) << status.message();
    return measured;
  }
};

TEST(transfer_report, says_per_source_and_class_what_was_reached) {
  Fixture f;
  f.store(network("target", 20), "target");
  f.store(network("first", 24), "first");
  f.store(network("second", 28), "second");
  f.options.measure = 3;
  const Result<TransferReport> report = transfer_report(network("target", 20), f.options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->model, "target");
  EXPECT_EQ(report->untuned, 0);
  EXPECT_EQ(report->full_seconds, 10);
  EXPECT_EQ(report->full_trials, 2 * report->tasks);
  ASSERT_EQ(report->sources.size(), 3U);  // both models in the heuristic's order, and the pool
  EXPECT_EQ(report->sources[2].name, "pool");
  EXPECT_GE(report->sources[0].score, report->sources[1].score);
  EXPECT_GT(report->sources[1].score, 0);
  for (const TransferSource& source : report->sources) {
    double sum = 0;
    for (const TransferClass& c : source.classes) {
      sum += c.transfer_seconds;
      EXPECT_LE(c.best_seconds, c.transfer_seconds);
      EXPECT_LE(c.transfer_seconds, c.default_seconds) << "never worse once measured";
      EXPECT_LE(c.share().value_or(0), 1.0);
    }
    EXPECT_DOUBLE_EQ(sum, source.total.transfer_seconds);
    EXPECT_EQ(source.total.tasks, report->tasks);
    EXPECT_GT(source.total.sources, 0);
  }
  // The pool has more to choose from than each model; two conv records instead of one.
  EXPECT_GT(report->sources[2].total.sources, report->sources[0].total.sources);
}

TEST(transfer_report, without_measuring_only_the_comparison_runs) {
  WithSource f;
  const int compared = f.count();
  f.options.measure = 2;
  EXPECT_GT(f.count(), compared);
}

TEST(transfer_report, a_search_ends_with_its_time_or_its_candidates) {
  WithSource f;
  const int compared = f.count();
  const auto measured_with = [&](double seconds, int most) {
    f.options.search_seconds = seconds, f.options.measure = most;
    return f.count();
  };
  const int two_each = measured_with(0, 2);
  EXPECT_EQ(measured_with(3600, 2), two_each);
  EXPECT_LT(measured_with(1e-9, 2), two_each);
  EXPECT_GT(measured_with(1, 0), compared) << "a time alone is enough for a search";
  EXPECT_GT(two_each, compared);
  f.options.as_in_paper = true;
  EXPECT_EQ(transfer_report(network("target", 20), f.options).status().code(), Code::kInvalid);
}

TEST(transfer_report, the_same_model_of_another_size_is_a_source) {
  Fixture f;
  f.store(network("net", 20), "net");
  f.store(network("net", 40), "net");
  f.options.from = {"net"};
  const Result<TransferReport> report = transfer_report(network("net", 20), f.options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->sources[0].total.sources, 0);
}

TEST(transfer_report, says_what_the_rule_promised_of_each_named_model) {
  Fixture f;
  f.store(network("target", 20), "target");
  f.store(network("first", 24), "first");
  f.options.compile.advanced.seed = 3;
  f.options.from = {"first", "pool"};
  const Result<TransferReport> report = transfer_report(network("target", 20), f.options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->sources[0].score, 0);
  EXPECT_EQ(report->sources[1].score, 0);
}

TEST(transfer_report, what_is_missing_is_said) {
  Fixture f;
  ASSERT_TRUE(db::open_store(f.options.compile.records.db).ok());
  EXPECT_EQ(transfer_report(network("target", 20), f.options).status().code(), Code::kNotFound);
  f.store(network("other", 24), "other");
  f.store(network("target", 20), "target");
  f.options.from = {"third"};
  const Status status = transfer_report(network("target", 20), f.options).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("other"), std::string::npos) << status.message();
  f.options.compile.records.use_db = false;
  EXPECT_EQ(transfer_report(network("target", 20), f.options).status().code(), Code::kInvalid);
}

TEST(transfer_report, a_share_needs_something_to_gain) {
  TransferClass sum;
  sum.default_seconds = 4, sum.transfer_seconds = 3, sum.best_seconds = 2;
  EXPECT_DOUBLE_EQ(sum.share().value(), 0.5);
  sum.best_seconds = 4;
  EXPECT_FALSE(sum.share().has_value());
}

}  // namespace
}  // namespace hone
