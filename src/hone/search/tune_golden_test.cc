// Whole runs over two tasks on machines that exist only as numbers, for a device that is described
// and not detected: what each strategy measures and chooses is compared with goldens/tune.txt. A
// change that means to move it runs this program with --update-goldens and says why.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/search/noisy_runner_testing.h"
#include "hone/search/policy.h"
#include "hone/search/tune_tasks_testing.h"

namespace hone::search {

bool update_goldens = false;

namespace {

// By the place of a job in its task's run, not by its machine code: another compiler moves nothing.
double seconds_of(const measure::Job& job) {
  const uint64_t luck = hash_combine(hash_string(job.label), job.id);
  return 1e-4 * (1 + static_cast<double>(luck % 1000) / 100);
}

struct Scenario {
  std::string strategy;
  bool noise = false;  // of NoisyRunner; else some candidates fail
  int threads = 1;
};

std::string to_text(const Scenario& scenario) {
  return fmt::format("{}, {}, {} threads", scenario.strategy, scenario.noise ? "noise" : "failures",
                     scenario.threads);
}

// Returns the stored fields of a record, without those of the machine and the day.
std::string to_text(const trial::Record& record) {
  return fmt::format("{:x} {} {} {} {} {:.6g}\n", record.task, record.decisions, record.steps,
                     trial::outcome_name(record.outcome), record.crowned, record.centre);
}

std::string to_text(const schedule::Steps& steps, double seconds) {
  return fmt::format("{:.4g} s {} {:016x}\n", seconds, schedule::algorithm_of(steps),
                     hash_string(schedule::to_string(steps)));
}

// The chosen schedules, and a hash of all that was stored on the way there.
class GoldenRun {
 public:
  explicit GoldenRun(const Scenario& scenario)
      : noisy_(1, f_.clock, seconds_of), null_([this](const measure::Job& job) -> Result<double> {
          f_.clock.advance(0.05);
          const uint64_t luck = hash_combine(job.id, hash_string(job.label));
          if (luck % 7 == 0) return error(Code::kTimeout, "too slow");
          return seconds_of(job);
        }) {
    policy_ = std::move(make_policy(scenario.strategy)).value();
    TuneLoopOptions& options = f_.options;
    options.max_trials = 16;
    options.batch = 4;
    options.runner = &null_;
    if (scenario.noise) options.runner = &noisy_;
    options.store = store_.get();
    options.overlap = false;
    options.compile_threads = 1;
    options.deadline = 1000;
    options.context.target = &device_;
    options.context.policy = policy_.get();
    options.context.tolerance = 1e-4;
    options.context.threads = scenario.threads;
    options.context.weights = measure::Weights::kShared;
  }

  std::string run() {
    const Result<TuneResult> result = tune_tasks(f_.tasks, f_.options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    const auto records = store_->query({});
    EXPECT_TRUE(records.ok());
    std::string trials;
    for (const trial::Record& record : *records) trials += to_text(record);
    std::string text = fmt::format("{} records {:016x}\n", records->size(), hash_string(trials));
    for (const TunedTask& task : result->tasks) {
      text += to_text(task.steps, task.seconds);
      for (const MeasuredSchedule& next : task.runners_up)
        text += "  " + to_text(next.steps, next.seconds);
    }
    return text;
  }

 private:
  TuneFixture f_;
  const TestStore store_;
  const target::Target device_ = target::find("x86-64-avx2").value();
  std::unique_ptr<Policy> policy_;
  NoisyRunner noisy_;
  measure::NullRunner null_;
};

TEST(tune_golden, strategies_measure_and_choose_what_they_did) {
  std::string made;
  std::vector<Scenario> scenarios;
  for (const std::string& strategy : strategy_names()) scenarios.push_back({strategy});
  scenarios.push_back({"mixed", true, 1});
  scenarios.push_back({"mixed", true, 2});
  scenarios.push_back({"mixed", false, 2});
  for (const Scenario& scenario : scenarios) {
    GoldenRun runs(scenario);
    // The second one starts from what the first one stored.
    made += fmt::format("== {}\n{}-- again\n", to_text(scenario), runs.run()) + runs.run();
  }
  const std::string path = HONE_SEARCH_GOLDENS "/tune.txt";
  if (update_goldens) {
    ASSERT_TRUE(write_file_atomic(path, made).ok());
  } else {
    EXPECT_EQ(made, read_file(path).value());
  }
}

}  // namespace
}  // namespace hone::search

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  hone::search::update_goldens = argc > 1 && std::string_view(argv[1]) == "--update-goldens";
  return RUN_ALL_TESTS();
}
