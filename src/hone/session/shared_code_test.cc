#include "hone/session/shared_code.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "hone/graph/test_model.h"
#include "hone/session/compile_graph.h"
#include "hone/session/step_run.h"
#include "hone/session/write_model.h"

namespace hone {
namespace {

// An LSTM of both directions whose steps write parts of its result.
graph::Graph steps_of(int64_t steps, int64_t batch, int64_t hidden, bool is_output = false) {
  Rng rng(1);
  graph::TestModel model;
  model.input("x", {steps, batch, 6})
      .constant("w", graph::random_tensor({2, 4 * hidden, 6}, rng))
      .constant("r", graph::random_tensor({2, 4 * hidden, hidden}, rng))
      .node("LSTM", {"x", "w", "r"}, {"a"},
            {{"direction", std::string("bidirectional")}, {"hidden_size", hidden}});
  if (is_output) return model.output("a").graph();
  return model.node("Relu", {"a"}, {"y"}).output("y").graph();
}

struct Compiled {
  explicit Compiled(const graph::Graph& graph)
      : session(Session::open(options()).value()),
        made(*make_untuned(*session, graph, options())),
        assembly(*assemble_model(made.model, made.schedules, options())) {}

  static CompileOptions options() {
    CompileOptions options;
    options.records.use_db = false;
    options.target.threads = 1;
    return options;
  }

  std::unique_ptr<Session> session;
  Untuned made;
  Assembly assembly;
};

TEST(shared_code, steps_that_differ_in_the_place_of_their_result_have_one_kernel) {
  const Compiled few(steps_of(12, 4, 16)), many(steps_of(40, 4, 16));
  EXPECT_EQ(few.assembly.spec.executables.size(), many.assembly.spec.executables.size());
  EXPECT_GT(many.made.model.tasks.groups.size(), many.assembly.spec.executables.size() + 30);
  std::set<int64_t> places;
  for (const artifact::ArtifactStep& step : many.assembly.spec.steps) {
    for (const artifact::ArtifactArgument& argument : step.arguments) {
      if (step.kernel_class == "copy" && argument.written) places.insert(argument.offset);
    }
  }
  EXPECT_GE(places.size(), 80u) << "each step writes its own part";
}

TEST(shared_code, the_results_are_those_of_the_graph) {
  struct Case {
    int64_t batch, hidden;
    bool is_output;  // the parts are of a result of the model
  };
  // Parts of 4 x 16 floats begin at multiples of 64 bytes, parts of 1 x 6 floats between them.
  for (const auto& [batch, hidden, is_output] :
       {Case{4, 16, false}, Case{1, 6, false}, Case{4, 16, true}, Case{1, 6, true}}) {
    const graph::Graph graph = steps_of(40, batch, hidden, is_output);
    const Compiled compiled(graph);
    StepRun run = *StepRun::create(compiled.assembly, 1);
    Rng rng(3);
    const std::vector<Tensor> inputs = {graph::random_tensor({40, batch, 6}, rng)};
    const Tensor expected = graph::run_plainly(graph, inputs)[0];
    Tensor found(DType::kF32, expected.shape());
    const Status ran = run.run(inputs, [&](int) {
      const graph::Graph& made = compiled.made.model.graph;
      const int index = made.value(made.outputs[0]).storage.buffer;
      std::memcpy(found.data(), run.memory(made.buffers[static_cast<size_t>(index)], index),
                  static_cast<size_t>(found.bytes()));
      return ok_status();
    });
    ASSERT_TRUE(ran.ok()) << ran.message();
    EXPECT_LE(graph::relative_error(found, expected), 1e-5) << batch;
  }
}

TEST(shared_code, a_few_parts_keep_code_of_their_own) {
  const Compiled compiled(steps_of(3, 4, 16));
  for (const auto& shared :
       find_shared_code(compiled.made.model.tasks, compiled.made.schedules, {}))
    EXPECT_FALSE(shared.has_value());
}

}  // namespace
}  // namespace hone
