#include "hone/backend/registry.h"

#include <gtest/gtest.h>

#include "hone/backend/cpu/sample_programs_testing.h"
#include "hone/backend/interpreted_testing.h"

namespace hone::backend {
namespace {

TEST(registry, a_device_has_the_back_end_of_its_kind) {
  EXPECT_EQ(target::find("aarch64-neon")->kind(), target::Kind::kCpu);
  EXPECT_EQ(of(*target::find("aarch64-neon")).value(), of(target::host()).value());
  EXPECT_EQ(testing::some_gpu().kind(), target::Kind::kGpu);
  const testing::GpusAreInterpreted installed;
  EXPECT_NE(of(testing::some_gpu()).value(), of(target::host()).value());
}

TEST(registry, a_kind_without_a_back_end_is_one_error_whatever_is_asked_of_it) {
  const testing::GpusHave none(nullptr);
  const ir::Program program = cpu::gemm_program({6, 16, 32, 6, 16, 8});
  const Status status = of(testing::some_gpu()).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "there is no back end for the kind of device 'GPU'");
  EXPECT_EQ(compile(program, testing::some_gpu()).status().message(), status.message());
  EXPECT_EQ(load({.kind = target::Kind::kGpu}).status().message(), status.message());
}

// Runs all entry points on random arguments and returns these afterwards.
std::vector<Tensor> results(const ir::Program& program, const target::Target& target) {
  const Result<Executable> executable = compile(program, target);
  EXPECT_TRUE(executable.ok()) << executable.status().message();
  const Result<LoadedPtr> loaded = load(*executable);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  std::vector<Tensor> tensors = ir::random_arguments(program, 1);
  std::vector<void*> args;
  for (Tensor& tensor : tensors) args.push_back(tensor.data());
  Tensor scratch(DType::kU8, {executable->scratch_bytes + 1});
  for (const EntryPoint& entry : executable->entries) {
    const Status status = (*loaded)->run(entry, args.data(), scratch.data(), 0, entry.num_tiles, 0);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return tensors;
}

// The seam takes code for granted neither as ELF nor as functions of this process.
TEST(registry, two_back_ends_compute_the_same) {
  const testing::GpusAreInterpreted installed;
  const ir::Program program = cpu::gemm_program({12, 32, 64, 6, 16, 8});
  const std::vector<Tensor> by_cpu = results(program, target::host());
  const std::vector<Tensor> interpreted = results(program, testing::some_gpu());
  const Tensor &a = by_cpu.back(), &b = interpreted.back();
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a.at(i), b.at(i), 1e-4);
    largest = std::max(largest, std::abs(a.at(i)));
  }
  EXPECT_GT(largest, 1);
  const Executable executable = compile(program, testing::some_gpu()).value();
  EXPECT_EQ(load(executable).value()->function(executable.entries[0].symbol), nullptr);
  EXPECT_TRUE(of(target::Kind::kGpu)
                  .value()
                  ->inspect(program, executable, testing::some_gpu())
                  .value()
                  .loops.empty());
}

}  // namespace
}  // namespace hone::backend
