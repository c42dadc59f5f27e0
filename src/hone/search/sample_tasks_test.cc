#include "hone/search/sample_tasks.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "hone/backend/compiled_late_testing.h"
#include "hone/base/file.h"
#include "hone/db/copy.h"
#include "hone/db/forwarding_store_testing.h"
#include "hone/db/registry.h"
#include "hone/measure/null_runner.h"
#include "hone/search/schedule_sampler.h"
#include "hone/search/test_tasks.h"

namespace hone::search {
namespace {

// One task or two on two devices, on a runner that gives each machine code a time of its own.
struct Fixture : TestTasks {
  backend::testing::CpusCompileLate backend;
  TempDir folder = std::move(TempDir::create()).value();
  ManualClock clock;
  target::Target host = target::host();
  target::Target other = *target::find("host-avx2");
  std::atomic<bool> stop = false;
  int jobs = 0, stop_after = -1;
  double job_seconds = 0.001;
  bool fail = false;
  measure::NullRunner runner{[this](const measure::Job& job) -> Result<double> {
    clock.advance(job_seconds);
    if (++jobs == stop_after) stop = true;
    if (fail && hash_string(job.executable.code.str()) % 5 == 0)
      return error(Code::kTimeout, "too slow");
    return 1e-4 * (1 + static_cast<double>(hash_string(job.executable.code.str()) % 1000) / 100);
  }};
  std::vector<SampledTask> sampled;
  SampleOptions options;

  explicit Fixture(bool both = false) {
    host.cpu().cores = other.cpu().cores = 2;
    if (!both) tasks.erase(tasks.begin());
    for (const TuneTask& task : tasks)
      sampled.push_back({task.dag, task.key, task.name, {"a", "b"}, measure::Weights::kWarm});
    options.devices = {{&host, "wide"}, {&other, "narrow"}};
    options.threads = {1, 2};
    options.model = model.get();
    options.version = "1";
    options.schedules = 6, options.round = 3;
    options.tolerance = 0;
    options.runner = &runner;
    options.clock = &clock;
    options.deadline = 1e6;
    options.interrupted = &stop;
  }
  std::string path() const { return folder.file("data.db"); }
  Result<DatasetSummary> run() {
    auto store = db::open_store(path());
    if (!store.ok()) return store.status();
    options.store = store->get();
    return sample_tasks(sampled, options);
  }
  // Distinct schedules of each task, device and number of threads.
  std::map<std::tuple<uint64_t, std::string, int>, std::set<std::string>> stored(
      int64_t* records = nullptr) {
    std::map<std::tuple<uint64_t, std::string, int>, std::set<std::string>> all;
    const auto store = db::open_store(path());
    EXPECT_TRUE(db::for_each_record(**store, {}, [&](trial::Record&& record) {
                  all[{record.task, record.device, record.threads}].insert(record.steps);
                  if (records) ++*records;
                  return ok_status();
                }).ok());
    return all;
  }
};

TEST(sample_tasks, measures_every_task_on_every_device_with_every_number_of_threads) {
  Fixture f(true);
  const Result<DatasetSummary> result = f.run();
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->complete);
  int64_t records = 0;
  const auto stored = f.stored(&records);
  EXPECT_EQ(stored.size(), 8U);
  for (const auto& [slot, steps] : stored) {
    EXPECT_EQ(steps.size(), 6U);
    // One schedule is compiled once for all numbers of threads.
    EXPECT_EQ(steps, stored.at({std::get<0>(slot), std::get<1>(slot), 1}));
  }
  EXPECT_EQ(records, 48);
  EXPECT_EQ(result->progress.records, 48);
  EXPECT_EQ(result->progress.stored, result->progress.wanted);
}

TEST(sample_tasks, resumes_where_it_was_interrupted_and_repeats_nothing) {
  Fixture f;
  f.stop_after = 20;
  const Result<DatasetSummary> first = f.run();
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->interrupted);
  EXPECT_FALSE(first->complete);
  const int64_t before = first->progress.records;
  EXPECT_GT(before, 0);
  EXPECT_LT(before, 24);
  f.stop = false;
  const Result<DatasetSummary> second = f.run();
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->complete);
  int64_t records = 0;
  for (const auto& [slot, steps] : f.stored(&records)) EXPECT_GE(steps.size(), 6U);
  EXPECT_EQ(records, before + second->progress.records);
  const Result<DatasetSummary> third = f.run();
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->progress.records, 0);
}

// The next turn is prepared before this one's records are counted, so it may bring too many.
TEST(sample_tasks, measures_no_more_schedules_than_are_wanted) {
  Fixture f;
  f.options.devices.pop_back();
  f.options.threads = {1};
  f.options.round = 8;
  f.options.schedules = 9;
  ASSERT_TRUE(f.run().ok());
  for (const auto& [slot, steps] : f.stored()) EXPECT_EQ(steps.size(), 9U);
}

TEST(sample_tasks, an_interrupted_run_is_balanced) {
  Fixture f;
  f.options.schedules = 18;
  f.stop_after = 100;
  ASSERT_TRUE(f.run().ok());
  size_t least = 18, most = 0;
  for (const auto& [slot, steps] : f.stored())
    least = std::min(least, steps.size()), most = std::max(most, steps.size());
  EXPECT_LE(most - least, 2 * static_cast<size_t>(f.options.round));
}

TEST(sample_tasks, slow_tasks_get_fewer_schedules) {
  Fixture f;
  f.options.schedules = 1000;
  f.options.task_seconds = 1;
  f.job_seconds = 0.1;
  const Result<DatasetSummary> result = f.run();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->complete);
  for (const auto& [slot, steps] : f.stored()) {
    EXPECT_GE(steps.size(), 2U);
    EXPECT_LE(steps.size(), 10U);
  }
}

TEST(sample_tasks, failures_are_records_and_models_take_turns) {
  Fixture f;
  f.fail = true;
  const Result<DatasetSummary> result = f.run();
  ASSERT_TRUE(result.ok());
  EXPECT_GT(result->progress.failed, 0);
  const auto store = db::open_store(f.path());
  std::map<std::string, int> models, outcomes;
  int repeated = 0;
  ASSERT_TRUE(db::for_each_record(**store, {}, [&](trial::Record&& record) {
                ++models[record.model];
                ++outcomes[std::string(trial::outcome_name(record.outcome))];
                if (record.outcome == trial::Outcome::kOk) {
                  repeated += record.times.size() > 1;
                  EXPECT_EQ(record.drift, 1);
                }
                return ok_status();
              }).ok());
  EXPECT_EQ(models["a"], models["b"]);
  EXPECT_GT(repeated, 0);
  EXPECT_EQ(outcomes["timeout"], result->progress.failed);
}

// A network that comes later has tasks that have all their schedules: whoever holds it out must
// know.
TEST(sample_tasks, every_network_of_a_task_is_named) {
  Fixture f;
  ASSERT_TRUE(f.run().ok());
  f.sampled[0].models = {"a", "b", "c", "d"};
  const Result<DatasetSummary> second = f.run();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->progress.records, 2 * 2);  // two on each device
  std::set<std::string> models;
  const auto store = db::open_store(f.path());
  ASSERT_TRUE(db::for_each_record(**store, {}, [&](trial::Record&& record) {
                models.insert(record.model);
                return ok_status();
              }).ok());
  EXPECT_EQ(models, (std::set<std::string>{"a", "b", "c", "d"}));
  const Result<DatasetSummary> third = f.run();
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->progress.records, 0);
}

// A task that is alone, so that its next turn is prepared before this one is measured, and whose
// space has few schedules.
struct FewSchedules : Fixture {
  compute::Dag copy = compute::testing::transpose(3, 32, 32, 0);
  FewSchedules() {
    sampled = {{&copy, compute::task_key(copy), "copy", {"a"}, measure::Weights::kWarm}};
    options.devices = {{&other, "narrow"}};
    options.threads = {1};
    options.round = 32;
  }
  // Returns the number of different programs.
  [[nodiscard]] int64_t exist() const {
    const space::Space space = space::Space::create(copy, other).value();
    std::set<uint64_t> programs;
    for (const space::Point& point : all_points(space)) {
      Candidate candidate{.point = point, .steps = space.steps(point)};
      lower(candidate, copy, other);
      programs.insert(candidate.program_hash);
    }
    return std::ssize(programs);
  }
};

TEST(sample_tasks, all_schedules_of_a_small_space_are_found) {
  const int64_t exist = FewSchedules().exist();
  ASSERT_GT(exist, 16);
  for (const int64_t wanted : {exist - 3, exist - 1, exist + 1}) {
    for (const int round : {4, 32}) {
      FewSchedules f;
      f.options.schedules = static_cast<int>(wanted), f.options.round = round;
      const Result<DatasetSummary> first = f.run();
      ASSERT_TRUE(first.ok());
      EXPECT_TRUE(first->complete);
      EXPECT_EQ(first->progress.records, std::min(wanted, exist)) << wanted << " by " << round;
      const Result<DatasetSummary> second = f.run();
      ASSERT_TRUE(second.ok());
      EXPECT_TRUE(second->complete);
      EXPECT_EQ(second->progress.records, 0) << wanted << " by " << round;
    }
  }
}

TEST(sample_tasks, it_is_not_complete_while_schedules_wait_to_be_measured) {
  const int64_t exist = FewSchedules().exist();
  int ended_early = 0;
  for (int jobs = 3; jobs < 60; jobs += 6) {
    FewSchedules f;
    f.options.schedules = 100;
    f.options.task_seconds = 0.08;  // a turn's share of it is too short for all that was drawn
    f.stop_after = jobs;
    const Result<DatasetSummary> result = f.run();
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->complete, result->progress.records == exist) << jobs;
    ended_early += !result->complete;
  }
  EXPECT_GT(ended_early, 3);
}

TEST(sample_tasks, it_is_not_complete_if_a_task_is_left_out) {
  class Failing final : public db::ForwardingStore {
   public:
    explicit Failing(db::Store& store, uint64_t task) : ForwardingStore(store), task_(task) {}
    Result<std::vector<trial::Record>> query(const db::Filter& filter) override {
      if (filter.task == task_) return error(Code::kIo, "the disk is gone");
      return ForwardingStore::query(filter);
    }

   private:
    uint64_t task_;
  };
  Fixture f(true);
  f.options.schedules = 3;
  ASSERT_TRUE(f.run().ok());
  f.options.schedules = 6;
  const auto store = db::open_store(f.path());
  Failing failing(**store, f.sampled[0].key);
  f.options.store = &failing;
  const Result<DatasetSummary> result = sample_tasks(f.sampled, f.options);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->complete);
  for (const auto& [slot, steps] : f.stored())
    EXPECT_EQ(steps.size(), std::get<0>(slot) == f.sampled[0].key ? 3U : 6U);
}

// A runner that has counters.
class CountingRunner final : public measure::Runner {
 public:
  explicit CountingRunner(measure::Runner& runner) : runner_(runner) {}
  [[nodiscard]] std::string_view name() const override { return "counting"; }
  [[nodiscard]] Status submit(std::vector<measure::Job> batch) override {
    for (const measure::Job& job : batch) wanted_.push_back(job.count_bounds);
    return runner_.submit(std::move(batch));
  }
  [[nodiscard]] Result<std::vector<measure::Measurement>> collect() override {
    HONE_ASSIGN_OR_RETURN(std::vector<measure::Measurement> all, runner_.collect());
    for (size_t i = 0; i < all.size(); ++i) {
      if (wanted_[i]) all[i].bounds = {{0.5, 0.25}, "test"};
    }
    wanted_.clear();
    return all;
  }
  void cancel() override {}

 private:
  measure::Runner& runner_;
  std::vector<bool> wanted_;
};

TEST(sample_tasks, records_have_counts_if_they_are_wanted) {
  for (const bool wanted : {true, false}) {
    Fixture f;
    CountingRunner runner(f.runner);
    f.options.runner = &runner;
    f.options.count_bounds = wanted;
    ASSERT_TRUE(f.run().ok());
    const auto store = db::open_store(f.path());
    ASSERT_TRUE(db::for_each_record(**store, {}, [&](trial::Record&& record) {
                  EXPECT_EQ(record.outcome, trial::Outcome::kOk);
                  EXPECT_EQ(record.bounds.has_value(), wanted);
                  const trial::CountedBounds none;
                  EXPECT_EQ(record.bounds.value_or(none).scores.memory, wanted ? 0.5 : 0);
                  return ok_status();
                }).ok());
  }
}

TEST(sample_tasks, ends_when_the_time_is_up) {
  Fixture f;
  f.options.schedules = 1000;
  f.options.deadline = 0.2;
  const Result<DatasetSummary> result = f.run();
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->complete);
  EXPECT_FALSE(result->interrupted);
  EXPECT_LT(f.clock.now_seconds(), 1);
}

}  // namespace
}  // namespace hone::search
