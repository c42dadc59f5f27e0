#include "tuning_run.h"

#include <gtest/gtest.h>

#include "report_page.h"

namespace hone::tool {
namespace {

TuningRun run_of(int kernels, int trials, const std::string& program) {
  TuningRun run;
  run.name = "run.json";
  run.threads = 1;
  run.trials = int64_t{kernels} * trials;
  int64_t number = 0;
  for (int k = 0; k < kernels; ++k) {
    RunKernel kernel;
    kernel.task.key = static_cast<uint64_t>(k + 1);
    kernel.task.name = fmt::format("/layer{}/Conv", k);
    kernel.task.kernel_class = "conv2d+bias+relu";
    kernel.task.seconds = 1e-3 / (k + 1);
    kernel.task.flops = kernel.task.least_flops = 1e6;
    kernel.task.bytes = 1e5;
    kernel.task.steps = std::string(1500, 's');
    kernel.programs = {program, std::string(600, 'u'), program};
    TrialInfo trial{.outcome = "ok", .seconds = 1, .verified = true};
    for (int i = 0; i < trials; ++i) {
      trial.seconds = 1e-3 / (k + 1) * (1 + 1.0 / (i % 17 + 1));
      trial.decisions = "winograd_2";
      for (int d = 0; d < 20; ++d)
        trial.decisions += fmt::format(" conv2d.acc.m{}:column={}", d, (i + d) % 7);
      kernel.history.add(trial, 0.001 * static_cast<double>(number), number + 1);
      ++number;
    }
    run.kernels.push_back(std::move(kernel));
  }
  return run;
}

TEST(tuning_run, a_page_of_100000_trials_has_5_megabytes_at_most) {
  const Json json = to_json(run_of(1000, 100, std::string(5000, 'p')), {});
  const std::string page = report_page({{"live", false}, {"runs", {json}}}, PageKind::kFile);
  EXPECT_LE(page.size(), 5'000'000U);
  EXPECT_EQ(json["kernels"].size(), 1000U);
  EXPECT_LE(json["curve"]["at"].size(), 1000U);
  EXPECT_GE(json["kernels"][999]["points"]["at"].size(), 20U);
  EXPECT_GE(json["kernels"][999]["decisions"].size(), 4U);
  EXPECT_EQ(json["kernels"][999]["steps"].get<std::string>().size(), 1500U);
  EXPECT_FALSE(json["kernels"][0]["program"].get<std::string>().empty());
  EXPECT_EQ(to_json(run_of(1, 100, ""), {})["kernels"][0]["decisions"].size(), 12U);
}

TEST(tuning_run, the_kernels_that_take_longest_keep_their_programs) {
  TuningRun run = run_of(3, 1, std::string(kMostTextBytes / 5, 'p'));
  std::swap(run.kernels[0], run.kernels[2]);  // the last one takes longest now
  const Json json = to_json(run, {});
  EXPECT_TRUE(json["kernels"][0]["program"].get<std::string>().empty());
  EXPECT_FALSE(json["kernels"][1]["program"].get<std::string>().empty());
  EXPECT_FALSE(json["kernels"][2]["untuned_program"].get<std::string>().empty());
  EXPECT_FALSE(json["kernels"][0]["untuned_steps"].get<std::string>().empty());
}

TEST(tuning_run, kernels_count_as_often_as_the_model_calls_them) {
  TuningRun run = run_of(2, 1, "");
  run.kernels[0].task.multiplicity = 3;
  const Json json = to_json(run, {});
  EXPECT_DOUBLE_EQ(json["curve"]["seconds"][0].get<double>(), 3 * 2e-3 + 1e-3);
}

TEST(tuning_run, limits_are_those_of_the_threads_that_ran) {
  TuningRun run = run_of(1, 1, "");
  run.roofline = Roofline{.cores = 2,
                          .flops = {1e11, 2e11},
                          .levels = {{1, 32'000, 1, {1e11, 2e11}, {1e10, 2e10}},
                                     {0, 0, 2, {1e10, 1e10}, {2e10, 2e10}}}};
  const Json json = to_json(run, Limits(*run.roofline, 1));
  EXPECT_EQ(json["roofline"]["flops"], 1e11);
  EXPECT_EQ(json["roofline"]["levels"][0]["name"], "L1");
  EXPECT_EQ(json["roofline"]["levels"][1]["name"], "memory");
  EXPECT_EQ(json["roofline"]["levels"][1]["bandwidth"], 2e10);
  EXPECT_DOUBLE_EQ(json["kernels"][0]["limit_seconds"].get<double>(), 1e-5);
  EXPECT_EQ(json["kernels"][0]["limit"], "compute");
  run.threads = 2;
  EXPECT_EQ(to_json(run, {})["roofline"]["flops"], 2e11);
  // Other work may have made both cores slower than one: the lines are where the limits are.
  run.roofline->levels[0].read.all = 1e9;
  run.roofline->levels[0].write.all = 1e9;
  run.roofline->flops.all = 1e9;
  run.kernels[0].task.bytes = 32'000;
  run.kernels[0].task.least_flops = 0;
  for (run.threads = 1; run.threads <= 2; ++run.threads) {
    const Json slow = to_json(run, Limits(*run.roofline, run.threads));
    EXPECT_EQ(slow["roofline"]["flops"], 1e11);
    EXPECT_NEAR(slow["kernels"][0]["limit_seconds"].get<double>() *
                    slow["roofline"]["levels"][0]["bandwidth"].get<double>(),
                32'000, 1);
  }
}

TEST(tuning_run, an_algorithm_of_fewer_products_is_not_above_the_arithmetic) {
  TuningRun run = run_of(1, 1, "");
  TaskSummary& winograd = run.kernels[0].task;
  winograd.flops = 1.2e8;
  winograd.least_flops = winograd.flops / 2.25;
  winograd.bytes = 1e4;
  winograd.seconds = 1e-3;  // 120 GFLOP/s as it is written, 53 by the algorithm
  run.roofline = Roofline{
      .cores = 1, .flops = {1.04e11, 1.04e11}, .levels = {{0, 0, 1, {1e11, 1e11}, {1e11, 1e11}}}};
  const Json json = to_json(run, Limits(*run.roofline, 1)), kernel = json["kernels"][0];
  const auto number = [&](const char* name) { return kernel[name].get<double>(); };
  const double peak = json["roofline"]["flops"].get<double>();
  EXPECT_GT(number("flops") / number("seconds"), peak);
  const double share = number("limit_seconds") / number("seconds");
  EXPECT_NEAR(number("least_flops") / number("seconds") / peak, share, 1e-4);
  EXPECT_LT(share, 0.6);
}

TEST(tuning_run, roles_count_by_the_share_of_their_kernels) {
  TuningRun run;
  for (int k = 0; k < 2; ++k) {
    RunKernel kernel;
    kernel.task.seconds = k == 0 ? 9e-3 : 1e-3;
    for (int i = 0; i < 40; ++i) {
      TrialInfo trial{.outcome = "ok", .seconds = 1, .verified = true};
      const int deciding = i % 2, other = i / 2 % 2;
      trial.seconds = 1e-3 * (1 + deciding) * (1 + 0.001 * i);
      trial.decisions = fmt::format("direct a:{}={} b:{}={}", k == 0 ? "lanes" : "tile", deciding,
                                    k == 0 ? "tile" : "lanes", other);
      kernel.history.add(trial, i, i + 1);
    }
    run.kernels.push_back(std::move(kernel));
  }
  const Json roles = to_json(run, {})["roles"];
  ASSERT_EQ(roles.size(), 2U);
  EXPECT_EQ(roles[0]["role"], "lanes");
  EXPECT_NEAR(roles[0]["explained"].get<double>(), 0.9, 0.05);
  EXPECT_EQ(roles[0]["kernels"], 2);
}

}  // namespace
}  // namespace hone::tool
