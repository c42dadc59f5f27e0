#include "hone/session/kernel.h"

#include <gtest/gtest.h>

#include "hone/backend/interpreted_testing.h"
#include "hone/compute/dag_testing.h"
#include "hone/ir/parser.h"
#include "hone/search/reference.h"
#include "hone/space/space.h"

namespace hone {
namespace {

// A convolution whose schedule packs weights.
struct PackedConv {
  compute::Dag dag = compute::testing::conv2d({.h = 5, .w = 6, .ic = 8, .oc = 32});
  space::Space space = *space::Space::create(dag, target::host(), trial::Accuracy::kDefault);
  schedule::Steps steps = space.steps(space.default_point());

  // Returns random arguments of the kernel, and no tensors for what it makes itself.
  [[nodiscard]] std::vector<Tensor> arguments(const Kernel& kernel) const {
    std::vector<Tensor> tensors = search::task_arguments(dag, 3);
    tensors.resize(kernel.program().params.size());
    return tensors;
  }
  // Returns the output of a kernel for the target that runs on two threads.
  [[nodiscard]] Tensor output(const target::Target& target) const {
    const Result<Kernel> kernel = build_kernel(dag, steps, target);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    std::vector<Tensor> tensors = arguments(*kernel);
    const Status status = run(*kernel, tensors, 2);
    EXPECT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < dag.params.size(); ++i) {
      if (dag.params[i].role == ir::Role::kOutput) return tensors[i];
    }
    return {};
  }
};

// Code that is no function of this process computes the same from the same schedule.
TEST(kernel, runs_by_another_back_end) {
  const backend::testing::GpusAreInterpreted installed;
  const PackedConv conv;
  const Tensor by_cpu = conv.output(target::host());
  const Tensor interpreted = conv.output(backend::testing::some_gpu());
  ASSERT_EQ(by_cpu.size(), interpreted.size());
  for (int64_t i = 0; i < by_cpu.size(); ++i) EXPECT_NEAR(by_cpu.at(i), interpreted.at(i), 1e-3);
}

// Whatever device a kernel is for, this machine packs its weights.
TEST(kernel, weights_for_another_device_are_packed_here) {
  const backend::testing::GpusAreInterpreted installed;
  const PackedConv conv;
  std::vector<std::vector<Tensor>> packed;
  for (const target::Target& target :
       {target::host(), backend::testing::some_gpu(), *target::find("aarch64-neon")}) {
    const Kernel kernel = build_kernel(conv.dag, conv.steps, target).value();
    ASSERT_TRUE(kernel.executable.prepares_constants()) << target.name;
    packed.push_back(conv.arguments(kernel));
    ASSERT_TRUE(prepare(kernel, target, packed.back(), 1).ok()) << target.name;
    for (size_t i = 0; i < packed.back().size(); ++i) {
      if (kernel.program().params[i].role != ir::Role::kPacked) continue;
      const Tensor &here = packed.front()[i], &there = packed.back()[i];
      ASSERT_EQ(here.bytes(), there.bytes());
      EXPECT_EQ(std::memcmp(here.data(), there.data(), static_cast<size_t>(here.bytes())), 0)
          << target.name;
    }
  }
}

TEST(kernel, uses_what_boxes_read) {
  const Result<ir::Program> program = ir::parse_program(R"(program p {
  input X: f32[16]
  input Z: f32[16]
  output Y: f32[16]
  phase {
    alloc shared s: f32[16] {
      alloc signal g: i64[1] arrivals 1 {
        roles { warp 1 {
          copy s[0 : 16] = X[0 : 16], g[0]
          await g[0], 0
          thread t in 0..16 { Y[t] = s[t] }
        } }
      }
    }
  }
}
)");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const LoweredPtr lowered = make_lowered(std::make_shared<const ir::Program>(*program));
  EXPECT_EQ(lowered->used, std::vector<bool>({true, false, true}));
}

TEST(kernel, a_device_without_a_back_end_is_an_error) {
  const backend::testing::GpusHave none(nullptr);
  const PackedConv conv;
  EXPECT_EQ(build_kernel(conv.dag, conv.steps, backend::testing::some_gpu()).status().code(),
            Code::kUnsupported);
}

}  // namespace
}  // namespace hone
