#include "hone/commands/sensitivity.h"

#include <gtest/gtest.h>

#include "hone/base/hash.h"
#include "hone/commands/null_job_testing.h"
#include "hone/db/sensitivity_store.h"

namespace hone {
namespace {

struct Fixture : testing::NullJob {
  SensitivityOptions options;
  // Every code has a time of its own.
  measure::NullRunner by_code{[this](const measure::Job& job) -> Result<double> {
    ++measured;
    return 1e-6 * static_cast<double>(1 + hash_string(job.executable.code.str()) % 1000);
  }};
  Fixture() {
    options.compile = NullJob::options();
    hooks.runner = &by_code;
    options.tasks = 1;
    options.options = 2;
    options.rounds = 1;
  }
  [[nodiscard]] Result<SensitivityReport> measure() const {
    return measure_sensitivity(std::vector{testing::network("network", 20)}, options);
  }
  [[nodiscard]] std::vector<trial::TaskSensitivity> stored(const SensitivityReport& report) const {
    return db::load_sensitivities(options.compile.records.db, report.device, 1).value();
  }
};

TEST(sensitivity, of_a_few_kernels_is_measured_and_stored) {
  Fixture f;
  const Result<SensitivityReport> report = f.measure();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->tasks, 1);
  EXPECT_GE(report->found, 2);
  EXPECT_EQ(report->measured, f.measured);
  EXPECT_EQ(report->left_out, 0);
  const std::vector<trial::TaskSensitivity> stored = f.stored(*report);
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].roles.size(), report->roles.size());
  double before = INFINITY;
  bool any = false;
  for (const RoleSensitivity& role : report->roles) {
    EXPECT_EQ(role.tasks, 1);
    EXPECT_DOUBLE_EQ(role.score, stored[0].roles.at(role.role).size());
    EXPECT_LE(role.score, before);
    before = role.score;
    any = any || role.score > 0;
  }
  EXPECT_TRUE(any) << "the code depends on some decision";
}

TEST(sensitivity, a_bad_call_is_one_clear_error_and_keeps_what_is_stored) {
  Fixture f;
  const Result<SensitivityReport> report = f.measure();
  ASSERT_TRUE(report.ok()) << report.status().message();
  const std::atomic<bool> interrupted = true;
  f.options.interrupted = &interrupted;
  EXPECT_EQ(f.measure().status().code(), Code::kCancelled);
  f.options.interrupted = nullptr;
  f.options.budget_seconds = 0;
  EXPECT_EQ(f.measure().status().message(), "the budget is 0 seconds, expected more than 0");
  f.options.budget_seconds = 1e-9;
  EXPECT_EQ(f.measure().status().message(), "nothing was measured within the budget of 1e-09 s");
  f.options.compile.records.use_db = false;
  EXPECT_EQ(f.measure().status().message(),
            "a database is needed: what is measured is stored there");
  EXPECT_EQ(f.stored(*report).size(), 1U);
  EXPECT_EQ(measure_sensitivity(std::vector<std::string>(), f.options).status().message(),
            "no model was named");
}

}  // namespace
}  // namespace hone
