// Code of operators on GPUs whose bodies several threads share: on PoCL's device, compared with the
// interpreter, and as CUDA's code for two architectures.
#include "hone/backend/gpu/code_batch_testing.h"
#include "hone/backend/gpu/space_points_testing.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

namespace testing = backend::gpu::testing;
using Dags = std::vector<compute::Dag>;

Dags tasks_of(const TestModel& model) {
  Graph graph = model.graph();
  EXPECT_TRUE(optimize(graph).ok());
  const Result<TaskList> tasks = extract_tasks(graph);
  EXPECT_TRUE(tasks.ok()) << tasks.status().message();
  Dags dags;
  for (const TaskCall& call : tasks->calls) dags.push_back(call.dag);
  return dags;
}

Dags gather(const Shape& data, const Shape& indices) {
  TestModel model;
  model.input("x", data).input("i", indices, DType::kI64);
  return tasks_of(model.node("Gather", {"x", "i"}, {"y"}).output("y"));
}

Dags scatter(const Shape& data, const Shape& indices, const Shape& updates, const char* reduction) {
  TestModel model(18);
  model.input("x", data).input("i", indices, DType::kI64).input("u", updates);
  model.node("ScatterND", {"x", "i", "u"}, {"y"}, {{"reduction", std::string(reduction)}});
  return tasks_of(model.output("y"));
}

Dags first_of(const Shape& data, int64_t k, bool largest, DType dtype = DType::kF32) {
  TestModel model;
  model.input("x", data, dtype).constant("k", ints({k}));
  model.node("TopK", {"x", "k"}, {"v", "i"},
             {{"axis", int64_t{-1}}, {"largest", static_cast<int64_t>(largest)}});
  return tasks_of(model.output("v").output("i"));
}

Dags running_sum(const Shape& data, bool exclusive) {
  TestModel model;
  model.input("x", data).constant("axis", ints({1}));
  model.node("CumSum", {"x", "axis"}, {"y"}, {{"exclusive", static_cast<int64_t>(exclusive)}});
  return tasks_of(model.output("y"));
}

void for_points(const Dags& dags, const target::Target& target, int samples,
                const std::function<void(const ir::Program&)>& f) {
  for (const compute::Dag& dag : dags) {
    SCOPED_TRACE(compute::describe(dag));
    const Result<space::Space> space = space::Space::create(dag, target);
    ASSERT_TRUE(space.ok()) << space.status().message();
    const std::vector<space::Point> points =
        samples > 0 ? space->default_points() : std::vector{space->default_point()};
    testing::for_points(*space, points, samples, 1, f);
  }
}

target::Target small_gpu() {
  target::Gpu gpu;
  gpu.sms = 2;
  return {.name = "small", .part = gpu};
}

class TasksOnOpenCl : public testing::OpenClTest {
 protected:
  void expect(const Dags& dags) {
    for_points(dags, small_gpu(), 1, [&](const ir::Program& program) { add(program, 1, 1e-5); });
  }
};

TEST_F(TasksOnOpenCl, rows_are_gathered_and_updated) {
  for (const int64_t n : {7, 12}) {
    expect(gather({17, n}, {13}));
    expect(scatter({17, n}, {5, 1}, {5, n}, "none"));
    expect(scatter({3, 7, n}, {7, 2}, {7, n}, "add"));
  }
  expect_right();
}

TEST_F(TasksOnOpenCl, blocks_select) {
  for (const int64_t n : {31, 300}) expect(first_of({3, n}, 3, true));
  expect(first_of({2, 31}, 31, false));
  expect_right();
}

TEST_F(TasksOnOpenCl, blocks_scan) {
  for (const int64_t n : {97, 600}) {
    for (const bool exclusive : {false, true}) expect(running_sum({3, n}, exclusive));
  }
  expect_right();
}

using TasksOnCuda = testing::CudaTest;

// Tasks of real sizes: an embedding, scores of a detector, a cache of keys, a sort.
TEST_F(TasksOnCuda, bodies_stay_in_registers) {
  const target::Target h100 = *target::find("cuda-sm_90a");
  const auto add_program = [&](const ir::Program& program) { add(program); };
  for (const Dags& dags : {gather({30522, 768}, {8, 512}), first_of({81, 8732}, 100, true),
                           first_of({8, 32000}, 50, true), first_of({64, 2048}, 2048, true),
                           first_of({512, 64}, 6, true), running_sum({64, 4096}, false),
                           scatter({1, 8, 2048, 64}, {1, 8, 1, 3}, {1, 8, 1, 64}, "none")})
    for_points(dags, h100, 0, add_program);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const backend::gpu::Cubin cubin = expect_compiled({arch});
    EXPECT_EQ(cubin.kernels.size(), 8);
    for (const backend::gpu::KernelNote& kernel : cubin.kernels) {
      EXPECT_EQ(kernel.spill_bytes, 0) << kernel.symbol;
      EXPECT_EQ(kernel.stack_bytes, 0) << kernel.symbol;
      EXPECT_GT(kernel.registers, 0) << kernel.symbol;
    }
  }
}

// A thread of an embedding copies 16 bytes by one load and one store.
TEST_F(TasksOnCuda, an_embedding_is_copied_in_vectors) {
  for_points(gather({30522, 768}, {8, 512}), *target::find("cuda-sm_90a"), 0,
             [&](const ir::Program& program) { add(program); });
  const backend::gpu::Cubin cubin = expect_compiled({"sm_90a"});
  ASSERT_EQ(cubin.kernels.size(), 1);
  const auto found = backend::gpu::count_instructions(cubin.data, cubin.kernels[0].symbol);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->global_load, 2);  // the index and the vector
  EXPECT_EQ(found->global_store, 1);
}

}  // namespace
}  // namespace hone::graph
