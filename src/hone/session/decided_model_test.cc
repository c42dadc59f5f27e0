// Models of which data decide the numbers of rows, as code of this machine: what a run leaves out,
// NaN here as all memory at first, never reaches its results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "hone/session/compile_graph.h"
#include "hone/session/limit_tasks_testing.h"
#include "hone/session/step_run.h"
#include "hone/session/write_model.h"

namespace hone {
namespace {

constexpr int64_t kRows = 160, kWidth = 32;

// Rows of x [160, 32] that a mask takes.
graph::TestModel rows_of_mask() {
  graph::TestModel model;
  model.input("x", {kRows, kWidth}).input("mask", {kRows}, DType::kBool);
  model.node("Compress", {"x", "mask"}, {"rows"}, {{"axis", int64_t{0}}});
  return model;
}

Tensor mask_of(int64_t taken) {
  Tensor mask(DType::kBool, {kRows});
  auto* const flags = static_cast<uint8_t*>(mask.data());
  for (int64_t i = 0; i < kRows; ++i) flags[i * 7 % kRows] = i < taken ? 1 : 0;
  return mask;
}

// Gives each product Strassen's algorithm. Returns the number of those that have it.
int sum_rows(Untuned& made) {
  int count = 0;
  for (size_t g = 0; g < made.schedules.size(); ++g) {
    const Result<space::Space>& space = made.model.space(g);
    if (!space.ok()) continue;
    Rng rng(1);
    for (int i = 0; i < 500; ++i) {
      const schedule::Steps steps = space->steps(space->sample(rng));
      if (!schedule::algorithm_of(steps).starts_with("strassen")) continue;
      made.schedules[g] = steps;
      ++count;
      break;
    }
  }
  return count;
}

// Runs a model of x, a mask and one output with several numbers of rows, and compares the results
// with those of its nodes run one by one.
void check(const graph::TestModel& model, bool sums_rows = false) {
  CompileOptions options;
  options.records.use_db = false;
  options.target.threads = 2;
  const auto session = Session::open(options).value();
  const graph::Graph whole = model.graph();
  Untuned made = *make_untuned(*session, whole, options);
  if (sums_rows) {
    EXPECT_GT(sum_rows(made), 0);
  }
  const Assembly assembly = *assemble_model(made.model, made.schedules, options);
  EXPECT_FALSE(assembly.partial.empty());
  StepRun run = *StepRun::create(assembly, 2);
  Rng rng(5);
  for (const int64_t taken : {kRows, int64_t{3}, int64_t{0}, int64_t{64}, int64_t{1}}) {
    const std::vector<Tensor> inputs = {graph::random_tensor({kRows, kWidth}, rng), mask_of(taken)};
    const Tensor expected = graph::run_plainly(whole, inputs)[0];
    Tensor found(DType::kF32, expected.shape());
    const Status ran = run.run(inputs, [&](int) {
      const graph::Graph& graph = made.model.graph;
      const int index = graph.value(graph.outputs[0]).storage.buffer;
      std::memcpy(found.data(), run.memory(graph.buffers[static_cast<size_t>(index)], index),
                  static_cast<size_t>(found.bytes()));
      return ok_status();
    });
    ASSERT_TRUE(ran.ok()) << ran.message();
    const bool has_rows = expected.shape().size() > 1;
    const int64_t count = has_rows ? expected.size() / kRows * taken : expected.size();
    for (int64_t i = 0; i < count; ++i)
      ASSERT_NEAR(found.at(i), expected.at(i), 1e-4) << taken << " rows, element " << i;
  }
}

TEST(decided_model, products) {
  Rng rng(1);
  graph::TestModel model = rows_of_mask();
  model.constant("a", graph::random_tensor({kWidth, 96}, rng))
      .constant("b", graph::random_tensor({96, kWidth}, rng));
  model.node("MatMul", {"rows", "a"}, {"wide"}).node("Relu", {"wide"}, {"positive"});
  model.node("MatMul", {"positive", "b"}, {"y"}).output("y");
  check(model);
}

TEST(decided_model, products_do_not_sum_rows_of_which_some_are_missing) {
  Rng rng(1);
  graph::TestModel model = rows_of_mask();
  model.constant("a", graph::random_tensor({kWidth, 256}, rng))
      .constant("b", graph::random_tensor({256, 256}, rng));
  model.node("MatMul", {"rows", "a"}, {"wide"}).node("Tanh", {"wide"}, {"bounded"});
  model.node("MatMul", {"bounded", "b"}, {"y"}).output("y");
  check(model, true);
}

TEST(decided_model, attention_among_rows) {
  graph::TestModel model = rows_of_mask();
  model.node("Transpose", {"rows"}, {"keys"}, {{"perm", std::vector<int64_t>{1, 0}}});
  model.node("MatMul", {"rows", "keys"}, {"scores"});
  model.node("Softmax", {"scores"}, {"weights"}, {{"axis", int64_t{-1}}});
  model.node("MatMul", {"weights", "rows"}, {"y"}).output("y");
  check(model);
}

TEST(decided_model, a_sum_of_rows) {
  graph::TestModel model = rows_of_mask();
  model.constant("axes", graph::ints({0})).node("Exp", {"rows"}, {"large"});
  model.node("ReduceSum", {"large", "axes"}, {"y"}, {{"keepdims", int64_t{0}}}).output("y");
  check(model);
}

TEST(decided_model, rows_that_keep_their_places_in_another_shape) {
  Rng rng(1);
  graph::TestModel model = rows_of_mask();
  model.constant("heads", graph::ints({0, 4, 8})).constant("flat", graph::ints({-1, kWidth}));
  model.constant("factor", graph::random_tensor({4, 8}, rng));
  model.node("Reshape", {"rows", "heads"}, {"by_head"}).node("Mul", {"by_head", "factor"}, {"z"});
  model.node("Reshape", {"z", "flat"}, {"y"}).output("y");
  check(model);
}

// Returns the index of the first call with this text in its name.
size_t call_of(const graph::TaskList& tasks, std::string_view name) {
  for (size_t c = 0; c < tasks.calls.size(); ++c)
    if (tasks.calls[c].name.find(name) != std::string::npos) return c;
  ADD_FAILURE() << "no call " << name << " in\n" << graph::describe(tasks);
  return 0;
}

TEST(decided_model, calls_before_the_number_is_known_are_whole) {
  Rng rng(1);
  graph::TestModel model;
  model.input("x", {kRows, kWidth}).input("mask", {kRows}, DType::kBool);
  model.constant("a", graph::random_tensor({kWidth, 96}, rng));
  model.node("MatMul", {"x", "a"}, {"early"});
  model.node("Compress", {"early", "mask"}, {"rows"}, {{"axis", int64_t{0}}});
  model.constant("b", graph::random_tensor({96, 8}, rng)).node("MatMul", {"rows", "b"}, {"late"});
  model.output("late");
  const testing::Limited made = testing::limited(model);
  ASSERT_EQ(made.tasks.decided.size(), 1U);
  EXPECT_EQ(made.tasks.decided[0].most, kRows);
  EXPECT_FALSE(made.tasks.decided[0].places.empty());
  EXPECT_TRUE(made.limits[call_of(made.tasks, "early")].outputs.empty());
  const size_t late = call_of(made.tasks, "late");
  const auto product = std::ranges::find_if(
      made.tasks.calls.begin() + static_cast<long>(late), made.tasks.calls.end(),
      [](const auto& call) { return compute::kernel_class(call.dag).starts_with("gemm"); });
  ASSERT_NE(product, made.tasks.calls.end());
  const KernelLimits& limits = made.limits[static_cast<size_t>(product - made.tasks.calls.begin())];
  EXPECT_EQ(limits.outputs.size(), 1U);
  ASSERT_EQ(limits.decided.size(), 1U);
  EXPECT_EQ(limits.outputs[0].limit.form, limits.decided_from);
  const auto c = static_cast<size_t>(product - made.tasks.calls.begin());
  EXPECT_EQ(made.sizes[c].size(), 1U);
}

}  // namespace
}  // namespace hone
