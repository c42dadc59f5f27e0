// null_job_testing.h - a small network and a database for tests of jobs that measure, in which a
// runner that runs nothing takes the place of the workers.
#pragma once

#include <string>

#include "hone/base/file.h"
#include "hone/graph/test_model.h"
#include "hone/measure/null_runner.h"
#include "hone/session/compile_options.h"

namespace hone::testing {

// A convolution and a matrix product.
inline graph::Graph network(const std::string& name, int64_t size) {
  Rng rng(5);
  graph::TestModel model;
  model.input("x", {1, 8, size, size});
  const graph::AttributeList same = {{"pads", graph::Attribute{std::vector<int64_t>{1, 1, 1, 1}}}};
  model.constant("w", graph::random_tensor({16, 8, 3, 3}, rng));
  model.node("Conv", {"x", "w"}, {"a"}, same).node("Relu", {"a"}, {"b"});
  model.node("GlobalAveragePool", {"b"}, {"c"}).node("Flatten", {"c"}, {"d"});
  model.constant("wf", graph::random_tensor({16, 10}, rng))
      .constant("bf", graph::random_tensor({10}, rng));
  model.node("Gemm", {"d", "wf", "bf"}, {"y"}).output("y");
  graph::Graph graph = model.graph();
  graph.name = name;
  return graph;
}

struct NullJob {
  TempDir folder = std::move(TempDir::create()).value();
  JobHooks hooks;
  int measured = 0;
  // Whatever is longer to run as code is slower.
  measure::NullRunner runner{[this](const measure::Job& job) -> Result<double> {
    ++measured;
    return 1e-6 * static_cast<double>(job.executable.code.str().size());
  }};
  // The options of a job with a database in the folder. They point into this.
  [[nodiscard]] CompileOptions options() {
    hooks.runner = &runner;
    CompileOptions options;
    options.records.db = folder.file("hone.db");
    options.records.use_shipped = false;
    options.target.threads = 1;
    options.advanced.cost = "analytic";
    options.advanced.hooks = &hooks;
    return options;
  }
};

}  // namespace hone::testing
