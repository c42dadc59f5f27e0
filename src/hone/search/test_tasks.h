// search/test_tasks.h - for tests: two small tasks and the options of a run over them.
#pragma once

#include <memory>
#include <vector>

#include "hone/compute/dag_testing.h"
#include "hone/cost/registry.h"
#include "hone/search/tune_tasks.h"

namespace hone::search {

struct TestTasks {
  compute::Dag conv = compute::testing::conv2d({.h = 14, .w = 14, .ic = 16, .oc = 32});
  compute::Dag gemm = compute::testing::gemm(8, 64, 32);
  std::vector<TuneTask> tasks = {{&conv, compute::task_key(conv), 2, "conv"},
                                 {&gemm, compute::task_key(gemm), 1, "gemm"}};
  std::unique_ptr<cost::CostModel> model = std::move(cost::make_model("analytic")).value();

  // Returns options without a runner.
  [[nodiscard]] TuneLoopOptions options(int max_trials) const {
    TuneLoopOptions options;
    options.context = {
        .target = &target::host(), .model = model.get(), .device = "test", .version = "1"};
    options.max_trials = max_trials;
    return options;
  }
};

}  // namespace hone::search
