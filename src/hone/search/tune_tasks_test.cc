#include "hone/search/tune_tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "hone/backend/cpu/code_cache.h"
#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/db/forwarding_store_testing.h"
#include "hone/db/registry.h"
#include "hone/measure/null_runner.h"
#include "hone/search/noisy_runner_testing.h"
#include "hone/search/policy.h"
#include "hone/search/task_bound.h"
#include "hone/search/tune_tasks_testing.h"

namespace hone::search {
namespace {

// What was chosen for each task, first to last.
std::string schedules_of(const TuneResult& result) {
  std::string text;
  for (const TunedTask& task : result.tasks) {
    text += schedule::to_string(task.steps);
    for (const MeasuredSchedule& next : task.runners_up) text += schedule::to_string(next.steps);
  }
  return text;
}

TEST(tune_tasks, same_seed_and_measurements_give_the_same_schedules) {
  for (const std::string& name : strategy_names()) {
    for (const bool overlap : {false, true}) {
      std::vector<std::string> texts;
      for (int run = 0; run < 2; ++run) {
        TuneFixture f;
        const std::unique_ptr<Policy> policy = std::move(make_policy(name)).value();
        f.options.context.policy = policy.get();
        f.options.compile_threads = 3;  // candidates of three tasks at a time
        f.options.overlap = overlap;
        f.options.max_trials = 6;
        f.options.batch = 3;
        const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
        ASSERT_TRUE(result.ok()) << result.status().message();
        EXPECT_EQ(result->trials, 6);
        texts.push_back(schedules_of(*result));
      }
      EXPECT_EQ(texts[0], texts[1]) << name << (overlap ? ", compiled while measuring" : "");
    }
  }
}

TEST(tune_tasks, candidates_get_a_multiple_of_the_best_time_until_they_are_given_up) {
  // The longest once there is a best.
  const auto longest_timeout = [](double scale) {
    TuneFixture f;
    double longest = 0;
    measure::NullRunner runner([&](const measure::Job& job) -> Result<double> {
      f.clock.advance(0.05);
      if (job.timing.best > 0 && std::isfinite(job.timing.best))
        longest = std::max(longest, job.timeout_seconds);
      return scale * TuneFixture::code_seconds(job);
    });
    f.options.runner = &runner;
    EXPECT_TRUE(tune_tasks(f.tasks, f.options).ok());
    return longest;
  };
  const double fast = longest_timeout(1), slow = longest_timeout(1e5);  // 0.1 ms and 10 s at least
  EXPECT_GT(fast, 1e-4);
  EXPECT_GT(slow, 10);
  EXPECT_LT(fast, 0.5 * slow);
}

// The model that a tuner has by default learns from every batch.
TEST(tune_tasks, a_model_that_learns_is_as_deterministic) {
  for (const bool overlap : {false, true}) {
    std::vector<std::string> texts;
    for (int run = 0; run < 2; ++run) {
      TuneFixture f;
      const std::unique_ptr<cost::CostModel> model =
          std::move(cost::make_model(cost::default_model(target::host()))).value();
      f.options.context.model = model.get();
      f.options.compile_threads = 2;
      f.options.overlap = overlap;
      f.options.max_trials = 18;
      f.options.batch = 3;
      const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
      ASSERT_TRUE(result.ok()) << result.status().message();
      texts.push_back(schedules_of(*result));
    }
    EXPECT_EQ(texts[0], texts[1]) << (overlap ? "compiled while measuring" : "in turns");
  }
}

TEST(tune_tasks, never_ends_worse_than_the_default_and_measures_no_code_twice) {
  TuneFixture f;
  f.options.final_share = 0;
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok());
  for (const TunedTask& task : result->tasks) {
    EXPECT_GT(task.untuned_seconds, 0);
    EXPECT_LE(task.seconds, task.untuned_seconds);
    EXPECT_GT(task.trials, 0);
    for (const MeasuredSchedule& next : task.runners_up)
      EXPECT_FALSE(next.other_split) << "one thread runs all parts";
  }
  // A few points of small tasks make the same code, which is not measured again.
  // The best so far is timed again now and then, and in duels.
  EXPECT_EQ(f.codes.size(), static_cast<size_t>(kTrials));
  EXPECT_EQ(result->trials, kTrials);
  EXPECT_GT(f.measured, kTrials);
}

TEST(tune_tasks, equal_programs_of_runs_and_tasks_are_compiled_once) {
  TuneFixture f;
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  const int64_t compiled = backend::cpu::code_cache().counts().compiled;
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  EXPECT_EQ(backend::cpu::code_cache().counts().compiled, compiled);
  // Another task, but only by name.
  compute::Dag other = f.gemm;
  other.stages[0].op = "product";
  const TuneTask task{&other, compute::task_key(other), 1, "other"};
  ASSERT_NE(task.key, f.tasks[1].key);
  const int64_t reused = backend::cpu::code_cache().counts().reused;
  ASSERT_TRUE(tune_tasks({&task, 1}, f.options).ok());
  EXPECT_GT(backend::cpu::code_cache().counts().reused, reused);
  EXPECT_LT(backend::cpu::code_cache().counts().compiled, compiled + kTrials);
}

// Remembers what it was told.
class AttentiveModel : public cost::CostModel {
 public:
  [[nodiscard]] std::string_view name() const override { return "attentive"; }
  [[nodiscard]] Result<std::vector<double>> predict(
      std::span<const cost::Query> queries) const override {
    return std::vector<double>(queries.size(), 1e-4);
  }
  [[nodiscard]] Status update(std::span<const cost::Observation> observations) override {
    for (const cost::Observation& o : observations) {
      tasks.insert(o.query.task);
      failures += !std::isfinite(o.seconds);
      times += std::isfinite(o.seconds);
    }
    return ok_status();
  }
  [[nodiscard]] bool learns() const override { return true; }
  std::set<uint64_t> tasks;
  int times = 0, failures = 0;
};

TEST(tune_tasks, the_model_hears_of_every_task) {
  TuneFixture f;
  f.fail = true;
  AttentiveModel model;
  f.options.context.model = &model;
  f.options.max_trials = 20;
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  EXPECT_EQ(model.tasks.size(), 2U);
  EXPECT_GE(model.times, 10);
  EXPECT_GE(model.failures, 2);
}

TEST(tune_tasks, each_task_gets_as_many_trials_as_are_allowed) {
  for (const bool overlap : {false, true}) {
    TuneFixture f;
    f.options.overlap = overlap;
    f.options.max_trials = 0;
    f.options.max_task_trials = 7;
    f.options.batch = 4;
    const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
    ASSERT_TRUE(result.ok());
    for (const TunedTask& task : result->tasks) EXPECT_EQ(task.trials, 7);
  }
}

TEST(tune_tasks, stops_at_the_deadline_and_when_interrupted) {
  TuneFixture f;
  f.options.max_trials = 0;
  f.options.deadline = 2;
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok());
  EXPECT_LT(f.clock.now_seconds(), 4.0);
  EXPECT_GT(result->trials, 10);

  std::atomic<bool> interrupted = false;
  f.options.deadline = 1000;
  f.options.interrupted = &interrupted;
  f.options.on_progress = [&](const TuneProgress& progress) {
    interrupted = progress.trials >= 16;
  };
  const Result<TuneResult> second = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->interrupted);
  EXPECT_LE(second->trials, 32);
}

TEST(tune_tasks, ends_when_every_task_is_at_its_limit_and_tells_shares_and_limits) {
  TuneFixture f;
  const TuneLoopOptions& options = f.options;
  f.options.roofline = {.cores = 1,  // without measured limits no task is at its own
                        .flops = {50e9, 50e9},
                        .levels = {{0, 0, 1, {10e9, 10e9}, {5e9, 5e9}}}};
  const TaskBounds bounds(*options.context.target, options.context.threads, options.roofline);
  std::map<std::string, double> limit;
  for (const TuneTask& task : f.tasks) {
    const Result<space::Space> space = space::Space::create(*task.dag, *options.context.target);
    ASSERT_TRUE(space.ok());
    limit[task.name] = bounds.seconds(least_work(*task.dag, *space));
  }
  // The convolution is at its limit at once, the product from its 20th measurement on.
  int products = 0;
  measure::NullRunner runner([&](const measure::Job& job) -> Result<double> {
    f.clock.advance(0.05);
    const bool near = job.label == "conv" || ++products >= 20;
    return limit.at(job.label) * (near ? 1.02 : 3);
  });
  f.options.runner = &runner;
  f.options.max_trials = 0;
  f.options.deadline = 1000;
  std::vector<TuneProgress> reports;
  f.options.on_progress = [&](const TuneProgress& progress) { reports.push_back(progress); };
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_LT(f.clock.now_seconds(), 20);
  EXPECT_LE(result->tasks[0].trials, 8) << "a batch is enough to see that it is at its limit";
  EXPECT_GE(result->tasks[1].trials, 16);

  bool gained = false;
  for (const TuneProgress& report : reports) {
    double shares = 0;
    for (const TaskProgress& task : report.tasks) {
      EXPECT_DOUBLE_EQ(task.bound_seconds, limit.at(task.name));
      EXPECT_TRUE(!task.at_limit || task.expected_gain == 0);
      gained = gained || task.expected_gain > 0;
      shares += task.share;
    }
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_NEAR(report.left, 1000 - report.elapsed, 1e-9);
  }
  EXPECT_TRUE(gained);
  EXPECT_TRUE(reports.back().tasks[0].at_limit && reports.back().tasks[1].at_limit);
}

TEST(tune_tasks, goes_on_when_candidates_fail) {
  TuneFixture f;
  f.fail = true;
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->trials, kTrials);
  for (const TunedTask& task : result->tasks) EXPECT_GT(task.seconds, 0);
}

TEST(tune_tasks, a_second_run_goes_on_where_the_first_stopped) {
  const TestStore store;
  TuneFixture f;
  f.options.store = store.get();
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  const Result<std::vector<trial::Record>> first = store->query({});
  ASSERT_TRUE(first.ok());
  EXPECT_GE(first->size(), static_cast<size_t>(kTrials));
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  const Result<std::vector<trial::Record>> both = store->query({});
  ASSERT_TRUE(both.ok());
  std::set<std::string> schedules;
  for (const trial::Record& record : *both)
    schedules.insert(std::to_string(record.task) + record.steps);
  // Only the default schedules (and stored bests, of which an unverified run has none) come again.
  size_t defaults = 0;
  for (const TuneTask& task : f.tasks) {
    const Result<space::Space> space = space::Space::create(*task.dag, target::host());
    ASSERT_TRUE(space.ok());
    defaults += static_cast<size_t>(space->num_sketches());
  }
  EXPECT_GE(schedules.size() + defaults, both->size());
  EXPECT_GT(both->size(), first->size() + kTrials * 3 / 4);
}

// Of more than a tuner asks for, the newest are the ones near the best.
TEST(tune_tasks, of_many_records_the_newest_are_not_measured_again) {
  const TestStore store;
  TuneFixture f;
  f.options.store = store.get();
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  std::set<std::string> newest;
  const auto name = [](const trial::Record& record) {
    return std::to_string(record.task) + record.steps;
  };
  // None is verified, so none is a stored best, which would be measured again.
  f.options.context.most_known = 4;
  for (const TuneTask& task : f.tasks) {
    const auto records = store->query({.task = task.key, .limit = 4, .newest_first = true});
    ASSERT_TRUE(records.ok() && records->size() == 4U);
    for (const trial::Record& record : *records) {
      if (record.outcome == trial::Outcome::kOk) newest.insert(name(record));
    }
  }
  const int64_t last = store->query({.limit = 1, .newest_first = true})->front().id;
  f.options.max_trials = 60;
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  const auto later = store->query({.after_id = last});
  ASSERT_TRUE(later.ok());
  EXPECT_GT(later->size(), static_cast<size_t>(kTrials));
  for (const trial::Record& record : *later) EXPECT_FALSE(newest.contains(name(record)));
}

// Takes so many batches and then no more.
class FullStore final : public db::ForwardingStore {
 public:
  FullStore(db::Store& store, int batches) : ForwardingStore(store), left_(batches) {}
  Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) override {
    if (!batch.empty() && --left_ < 0) return error(Code::kIo, "the disk is full");
    return ForwardingStore::add(batch);
  }

 private:
  int left_;
};

TEST(tune_tasks, a_store_that_fails_ends_the_search_and_what_was_found_is_used) {
  const TestStore store;
  FullStore full(*store.get(), 1);
  TuneFixture f;
  f.options.store = &full;
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->store_status.message(), "the disk is full");
  EXPECT_LT(result->trials, kTrials);
  for (const TunedTask& task : result->tasks) EXPECT_GT(task.seconds, 0);
  const auto kept = store->query({});
  ASSERT_TRUE(kept.ok());
  EXPECT_GT(kept->size(), 0U);
}

TEST(tune_tasks, what_fails_is_counted_and_a_task_without_any_time_is_named) {
  TuneFixture f;
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) {
    if (line.find("task ") != std::string_view::npos) lines.emplace_back(line);
  });
  measure::NullRunner runner([&](const measure::Job& job) -> Result<double> {
    f.clock.advance(0.05);
    if (job.label == "gemm") return error(Code::kTimeout, "too slow");
    return TuneFixture::code_seconds(job);
  });
  f.options.runner = &runner;
  const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
  set_log_sink({});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_GT(result->tasks[0].seconds, 0);
  EXPECT_EQ(result->tasks[1].seconds, 0);
  EXPECT_EQ(result->tasks[1].steps, result->tasks[1].untuned_steps);
  ASSERT_TRUE(result->failures.contains(trial::Outcome::kTimeout));
  const Failures& late = result->failures.at(trial::Outcome::kTimeout);
  EXPECT_EQ(late.count, result->tasks[1].trials);
  EXPECT_EQ(late.first, "too slow");
  ASSERT_EQ(lines.size(), 1U) << "once a task";
  EXPECT_NE(lines[0].find("task gemm: none of the first "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("timeout: too slow"), std::string::npos) << lines[0];
}

TEST(tune_tasks, records_carry_what_else_the_machine_did) {
  const TestStore store;
  TuneFixture f;
  f.options.store = store.get();
  f.options.max_trials = 4;
  measure::HostMonitor::Sample now;
  measure::HostMonitor busy([&] {  // others have a quarter of its cores, its host an eighth
    now.average = 3;
    now.cpu.total += 200, now.cpu.idle += 75, now.cpu.steal += 25, now.own += 50;
    return now;
  });
  f.options.host = &busy;
  ASSERT_TRUE(tune_tasks(f.tasks, f.options).ok());
  const auto records = store->query({});
  ASSERT_TRUE(records.ok() && !records->empty());
  for (const trial::Record& record : *records) {
    EXPECT_EQ(record.host_load, 3);
    EXPECT_DOUBLE_EQ(record.others, 0.25);
    EXPECT_DOUBLE_EQ(record.steal, 0.125);
  }
}

TEST(tune_tasks, the_stored_best_never_gets_worse_on_a_noisy_machine) {
  const TestStore store;
  std::map<uint64_t, double> best;
  for (uint64_t round = 0; round < 3; ++round) {
    TuneFixture f;
    f.clock.advance(7.0 * static_cast<double>(round));  // another phase of the drift
    NoisyRunner runner(round + 1, f.clock, TuneFixture::code_seconds);
    f.options.runner = &runner;
    f.options.store = store.get();
    f.options.context.tolerance = 1e-4;
    f.options.context.seed = round + 1;
    f.options.deadline = f.clock.now_seconds() + 100;
    f.options.max_trials = 16;
    const Result<TuneResult> result = tune_tasks(f.tasks, f.options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    for (size_t t = 0; t < f.tasks.size(); ++t) {
      const auto stored =
          store->best({.task = f.tasks[t].key, .device = "test", .threads = 1, .version = "1"});
      ASSERT_TRUE(stored.ok() && stored->size() == 1);
      EXPECT_TRUE(stored->front().verified);
      EXPECT_TRUE(stored->front().crowned);
      EXPECT_EQ(stored->front().steps, schedule::to_string(result->tasks[t].steps));
      const double seconds = undisturbed_seconds(f.tasks[t], stored->front().steps);
      const auto before = best.emplace(f.tasks[t].key, seconds).first;
      EXPECT_LE(seconds, 1.02 * before->second) << "round " << round << ", task " << t;
      before->second = seconds;
    }
    // A run that has no time for a task leaves it with the stored best.
    f.options.max_trials = 1;
    const Result<TuneResult> brief = tune_tasks(f.tasks, f.options);
    ASSERT_TRUE(brief.ok());
    for (size_t t = 0; t < f.tasks.size(); ++t)
      EXPECT_EQ(brief->tasks[t].steps, result->tasks[t].steps);
  }
  // Whatever seemed faster than the best of its time and was not crowned is not before it.
  const auto all = store->query({.outcome = trial::Outcome::kOk});
  ASSERT_TRUE(all.ok());
  std::map<uint64_t, double> least;
  size_t drifted = 0;
  for (const trial::Record& record : *all) {
    drifted += record.drift != 1 ? 1 : 0;
    const auto place = least.emplace(record.task, INFINITY).first;
    if (record.crowned) place->second = std::min(place->second, record.centre);
  }
  for (const trial::Record& record : *all) EXPECT_GE(record.centre, least[record.task]);
  EXPECT_GT(drifted, 0U);
}

TEST(tune_tasks, a_second_model_starts_from_the_schedules_of_the_first) {
  StoredFixture f;
  const Result<std::vector<trial::Record>> first = f.store->query({});
  ASSERT_TRUE(first.ok());
  TransferPool pool;
  for (trial::Record record : *first) {
    record.verified = record.outcome == trial::Outcome::kOk;  // a null runner verifies nothing
    pool.add(record);
  }
  ASSERT_FALSE(pool.empty());

  const compute::Dag other =
      compute::testing::conv2d({.h = 28, .w = 28, .ic = 16, .oc = 32, .residual = true});
  const TuneTask task{&other, compute::task_key(other), 1, "other"};
  Result<space::Space> space = space::Space::create(other, target::host());
  ASSERT_TRUE(space.ok());
  const SearchTask search{&*space, &target::host(), f.model.get(), 1, task.key, 1};
  const TransferResult found = transfer(search, other, pool, {.device = "test"});
  ASSERT_GE(found.candidates.size(), 3U);

  f.options.pool = &pool;
  f.options.max_trials = 8;
  ASSERT_TRUE(tune_tasks({&task, 1}, f.options).ok());
  const Result<std::vector<trial::Record>> trials = f.store->query({.task = task.key});
  ASSERT_TRUE(trials.ok());
  ASSERT_GE(trials->size(), 3U);
  EXPECT_EQ((*trials)[0].steps, schedule::to_string(space->steps(space->default_point())));
  std::set<std::string> tried;
  for (const trial::Record& trial : *trials) tried.insert(trial.steps);
  EXPECT_TRUE(tried.contains(schedule::to_string(found.candidates[0].steps)));
}

}  // namespace
}  // namespace hone::search
