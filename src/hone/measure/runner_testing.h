// measure/runner_testing.h - a runner on this machine and one job's measurement, for tests.
#pragma once

#include <gtest/gtest.h>

#include "hone/measure/local_runner.h"
#include "hone/measure/test_job.h"

namespace hone::measure {

inline std::unique_ptr<Runner> local(const WorkerOptions& options = {}) {
  auto runner = make_local_runner(options);
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  return runner.ok() ? *std::move(runner) : nullptr;
}

inline Measurement measure_one(Runner& runner, Job job) {
  EXPECT_TRUE(runner.submit({std::move(job)}).ok());
  const auto all = runner.collect();
  EXPECT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->size(), 1U);
  return all->front();
}

}  // namespace hone::measure
