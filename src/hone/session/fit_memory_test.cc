// A bound of memory decides between algorithms; compiled for a device of the table, so that the
// choices are the same on every machine.
#include "hone/session/fit_memory.h"

#include <gtest/gtest.h>

#include "hone/base/clock.h"
#include "hone/base/file.h"
#include "hone/graph/test_model.h"
#include "hone/session/compile_graph.h"

namespace hone {
namespace {

constexpr int64_t kWeights = int64_t{64} * 64 * 9 * 4;  // of one convolution, as given

// Three convolutions that Winograd's algorithm is good for; the images differ, so all are tasks.
graph::Graph three_convolutions() {
  Rng rng(5);
  graph::TestModel model;
  const auto ints = [](std::vector<int64_t> values) { return graph::Attribute{std::move(values)}; };
  for (const int64_t size : {12, 24, 36}) {
    const std::string n = std::to_string(size);
    model.input("x" + n, {1, 64, size, size});
    model.constant("w" + n, graph::random_tensor({64, 64, 3, 3}, rng));
    model.node("Conv", {"x" + n, "w" + n}, {"y" + n}, {{"pads", ints({1, 1, 1, 1})}});
    model.output("y" + n);
  }
  return model.graph();
}

CompileOptions options_for(int64_t max_memory) {
  CompileOptions options;
  options.target.device = "x86-64-avx2";
  options.records.use_db = false;
  options.advanced.cost = "analytic";
  options.target.threads = 1;
  options.target.max_memory = max_memory;
  return options;
}

Result<CompileSummary> compile_by_default(graph::Graph graph, const std::string& library,
                                          const CompileOptions& options) {
  const auto session = Session::open(options).value();
  return compile_graph(*session, std::move(graph), library, options, real_clock().now_seconds());
}

int num_direct(const std::vector<TaskSummary>& tasks) {
  int count = 0;
  for (const TaskSummary& task : tasks) {
    const Result<schedule::Steps> steps = schedule::parse_steps(task.steps);
    const bool conv = task.kernel_class.starts_with("conv2d");
    count += conv && steps.ok() && schedule::algorithm_of(*steps) == "direct" ? 1 : 0;
  }
  return count;
}

TEST(fit_memory, weights_count_as_kernels_read_them) {
  const CompileOptions options = options_for(0);
  const auto session = Session::open(options).value();
  const ModelTasks model = make_tasks(*session, three_convolutions(), options).value();
  // Of the transformed weights F(4x4) has 36 for 9; tiles of channels may be padded.
  for (const auto& [algorithm, times] : {std::pair{"direct", 1.0}, {"winograd_4", 4.0}}) {
    std::vector<schedule::Steps> schedules;
    for (size_t g = 0; g < model.tasks.groups.size(); ++g) {
      const space::Space space = space::Space::create(model.dag(g), model.target()).value();
      int sketch = 0;
      while (sketch < space.num_sketches() && space.algorithm(sketch) != algorithm) ++sketch;
      const std::vector<space::Point> points = space.default_points();
      schedules.push_back(space.steps(sketch < space.num_sketches() ? points[sketch] : points[0]));
    }
    const double bytes = static_cast<double>(packed_bytes(model, schedules).value());
    EXPECT_GE(bytes, 3 * times * kWeights) << algorithm;
    EXPECT_LE(bytes, 1.2 * 3 * times * kWeights) << algorithm;
  }
}

TEST(fit_memory, inputs_and_outputs_count_on_a_device_of_their_own) {
  artifact::ArtifactSpec spec;
  spec.inputs = {{.name = "x", .shape = {3}}};
  spec.outputs = {{.name = "y", .shape = {65}}};
  spec.arena_bytes = 64;
  EXPECT_EQ(memory_of(spec, 1).total(), 64);
  spec.device = runtime::DeviceKind::kOpenCl;
  EXPECT_EQ(memory_of(spec, 1).total(), 64 + 256 + 512);
}

TEST(fit_memory, larger_weights_give_way) {
  const TempDir folder = std::move(TempDir::create()).value();
  const std::string library = folder.file("model.so");
  const graph::Graph graph = three_convolutions();
  const Result<CompileSummary> free = compile_by_default(graph, library, options_for(0));
  ASSERT_TRUE(free.ok()) << free.status().message();
  EXPECT_EQ(num_direct(free->tasks), 0);
  EXPECT_GT(free->bytes, 3 * kWeights * 16 / 9);

  const int64_t bound = free->memory_bytes - 1;
  const Result<CompileSummary> less = compile_by_default(graph, library, options_for(bound));
  ASSERT_TRUE(less.ok()) << less.status().message();
  EXPECT_LE(less->memory_bytes, bound);
  EXPECT_LT(num_direct(less->tasks), 3);  // no more than had to

  // All the slack that Winograd's algorithm needs is taken away.
  const Result<CompileSummary> strict = [&] {
    CompileOptions options = options_for(0);
    options.target.accuracy = "strict";
    return compile_by_default(graph, library, options);
  }();
  ASSERT_TRUE(strict.ok());
  const int64_t least = strict->memory_bytes + kWeights / 9;  // code differs a little
  const Result<CompileSummary> small = compile_by_default(graph, library, options_for(least));
  ASSERT_TRUE(small.ok()) << small.status().message();
  EXPECT_LE(small->memory_bytes, least);
  EXPECT_EQ(num_direct(small->tasks), 3);
}

TEST(fit_memory, what_cannot_fit_is_refused) {
  const TempDir folder = std::move(TempDir::create()).value();
  const std::string library = folder.file("model.so");
  const Status status =
      compile_by_default(three_convolutions(), library, options_for(3 * kWeights)).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_TRUE(status.message().starts_with("the model needs ")) << status.message();
  EXPECT_NE(status.message().find("more than the 0.42 MiB"), std::string::npos) << status.message();
  EXPECT_FALSE(file_exists(library));
}

}  // namespace
}  // namespace hone
