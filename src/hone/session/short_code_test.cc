#include "hone/session/short_code.h"

#include <gtest/gtest.h>

#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/graph/test_model.h"
#include "hone/model.h"
#include "hone/session/compile_graph.h"
#include "hone/session/kernel.h"
#include "hone/session/schedule_sources.h"

namespace hone {
namespace {

using graph::TestModel;

// A convolution whose followers are long, for each of its registers.
TestModel long_followers() {
  Rng rng(1);
  TestModel model;
  model.input("x", {1, 11, 7, 9})
      .constant("w", graph::random_tensor({97, 11, 3, 3}, rng))
      .constant("b", graph::random_tensor({97}, rng))
      .node("Conv", {"x", "w", "b"}, {"y"},
            {{"pads", std::vector<int64_t>{2, 1, 2, 1}}, {"strides", std::vector<int64_t>{1, 2}}})
      .node("Softplus", {"y"}, {"s"})
      .node("Softplus", {"s"}, {"z"})
      .output("z");
  return model;
}

CompileOptions options_for(const char* device) {
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 1;
  options.target.device = device;
  return options;
}

TEST(short_code, takes_the_place_of_what_the_compiler_refuses) {
  const CompileOptions options = options_for("x86-64-avx2");
  const auto session = Session::open(options).value();
  Result<ModelTasks> model = make_tasks(*session, long_followers().graph(), options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  Result<ScheduleSources> sources = load_sources(*model, options);
  ASSERT_TRUE(sources.ok());
  Result<std::vector<schedule::Steps>> schedules = choose_schedules(*model, *sources, options);
  ASSERT_TRUE(schedules.ok());
  const std::vector<schedule::Steps> before = *schedules;
  const Result<bool> changed = shorten_code(*model, *schedules, options);
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_TRUE(*changed);
  int refused = 0;
  for (size_t g = 0; g < before.size(); ++g) {
    const Code code = build_kernel(model->dag(g), before[g], model->target()).status().code();
    refused += code == Code::kUnsupported;
    EXPECT_EQ((*schedules)[g] == before[g], code == Code::kOk);
    EXPECT_TRUE(build_kernel(model->dag(g), (*schedules)[g], model->target()).ok());
    EXPECT_EQ(model->summaries[g].steps, schedule::to_string((*schedules)[g]));
  }
  EXPECT_EQ(refused, 1);
}

TEST(short_code, computes_the_same) {
  const graph::Graph graph = long_followers().graph();
  const TempDir folder = std::move(TempDir::create()).value();
  for (const char* device : {"host", "host-avx2"}) {
    const Result<target::Target> target = target::find(device);
    if (!target.ok() || !target::runs_here(*target)) continue;
    const std::string library = folder.file("model.so");
    const CompileOptions options = options_for(device);
    const auto session = Session::open(options).value();
    const Result<CompileSummary> compiled =
        compile_graph(*session, graph, library, options, real_clock().now_seconds());
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    Result<Model> loaded = Model::load(library, 1);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    Rng rng(2);
    const std::vector<Tensor> inputs = {graph::random_tensor({1, 11, 7, 9}, rng)};
    const Result<std::vector<Tensor>> outputs = loaded->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_LT(graph::relative_error(outputs->at(0), graph::run_plainly(graph, inputs)[0]), 1e-5);
  }
}

}  // namespace
}  // namespace hone
