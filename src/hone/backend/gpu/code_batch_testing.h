// backend/gpu/code_batch_testing.h - programs that tests compile together, as a compilation of many
// kernels takes less time than many compilations: for OpenCL, where their results are compared with
// the interpreter's, and for architectures of CUDA, which need not be there.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "hone/backend/gpu/cubin.h"
#include "hone/backend/gpu/kernel_runner_testing.h"
#include "hone/backend/gpu/nvrtc.h"
#include "hone/backend/results_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"
#include "hone/ir/visit.h"

namespace hone::backend::gpu::testing {

inline bool has_matrices(const ir::Phase& phase) {
  return ir::any_stmt(*phase.body,
                      [](const ir::StmtNode& s) { return s.kind == ir::StmtKind::kMatrix; });
}

// Programs whose results are compared with the interpreter's.
class RunTest : public ::testing::Test {
 protected:
  explicit RunTest(Dialect dialect) : dialect_(dialect) {}
  void add(const ir::Program& program, uint64_t seed, double tolerance) {
    const Status verified = ir::verify(program);
    ASSERT_TRUE(verified.ok()) << verified.message();
    PrintOptions options;
    options.symbol_prefix = fmt::format("k{}", programs_.size());
    const auto kernels = printer_.add(program, options);
    ASSERT_TRUE(kernels.ok()) << kernels.status().message() << ir::print(program);
    programs_.push_back({program, seed, tolerance, *kernels});
  }
  [[nodiscard]] size_t size() const { return programs_.size(); }
  [[nodiscard]] Dialect dialect() const { return dialect_; }
  void expect_right() {
    const Status built = load(printer_.text());
    ASSERT_TRUE(built.ok()) << built.message() << "\n" << printer_.text();
    for (const Made& made : programs_) ASSERT_NO_FATAL_FAILURE(expect_right(made));
    programs_.clear();
    printer_ = SourcePrinter(dialect_);
  }
  struct Made {
    ir::Program program;
    uint64_t seed;
    double tolerance;
    std::vector<Kernel> kernels;
  };
  // Compiles the text of all programs.
  virtual Status load(const std::string& text) = 0;
  // Runs the kernels of a program on its arguments.
  virtual Status run(const Made& made, std::vector<Tensor>& args) = 0;
  [[nodiscard]] const std::vector<Made>& programs() const { return programs_; }

 private:
  void expect_right(const Made& made) {
    std::vector<Tensor> expected = ir::random_arguments(made.program, made.seed);
    // Copies of a tensor would share its memory.
    std::vector<Tensor> found = ir::random_arguments(made.program, made.seed);
    const Status ran = ir::run(made.program, expected);
    ASSERT_TRUE(ran.ok()) << ran.message() << ir::print(made.program);
    for (size_t i = 0; i < found.size(); ++i) {
      const ir::Param& param = made.program.params[i];
      // The host packs constants.
      if (param.role == ir::Role::kPacked) {
        found[i] = expected[i];
      } else if (backend::testing::is_written(param)) {
        backend::testing::fill_with_garbage(found[i]);
      }
    }
    const Status status = run(made, found);
    ASSERT_TRUE(status.ok()) << status.message() << "\n"
                             << ir::print(made.program) << print_c(made.program, dialect_)->text;
    ASSERT_EQ(backend::testing::difference(made.program, expected, found, made.tolerance), "")
        << "seed " << made.seed << "\n"
        << ir::print(made.program) << print_c(made.program, dialect_)->text;
  }

  Dialect dialect_;
  SourcePrinter printer_ = SourcePrinter(dialect_);
  std::vector<Made> programs_;
};

// Runs programs on PoCL's device.
class OpenClTest : public RunTest {
 protected:
  OpenClTest() : RunTest(Dialect::kOpenCl) {}
  void SetUp() override {
    std::string why;
    device_ = runtime::testing::open_pocl(why);
    ASSERT_NE(device_, nullptr) << why;
  }
  Status load(const std::string& text) override {
    runner_.emplace(*device_);
    return runner_->load(runtime::testing::opencl_source(text, options_));
  }
  Status run(const Made& made, std::vector<Tensor>& args) override {
    return runner_->run(made.kernels, args);
  }
  // PoCL then leaves out its optimisation, which takes most of the time that it compiles.
  void compile_unoptimised() { options_ = "-cl-opt-disable"; }

 private:
  runtime::testing::DevicePtr device_;
  std::optional<KernelRunner> runner_;
  const char* options_ = "";
};

// Compiles programs by NVRTC and runs them on a GPU, if both are there.
class CudaDeviceTest : public RunTest {
 protected:
  CudaDeviceTest() : RunTest(Dialect::kCuda) {}
  void SetUp() override {
    std::string why;
    device_ = runtime::testing::open_device(runtime::DeviceKind::kCuda, why);
    if (device_ == nullptr) GTEST_SKIP() << "skipped: no device: " << why;
    if (const Status status = find_nvrtc(); !status.ok())
      GTEST_SKIP() << "skipped: " << status.message();
  }
  Status load(const std::string& text) override {
    constexpr int kFirstSpecific = 90;  // an architecture with instructions of its own, as sm_90a
    const int capability = runtime::device_properties(*device_).capability;
    HONE_ASSIGN_OR_RETURN(cubin_,
                          compile_cuda(text, fmt::format("sm_{}{}", capability,
                                                         capability >= kFirstSpecific ? "a" : "")));
    runner_.emplace(*device_);
    return runner_->load({.format = runtime::CodeFormat::kCubin,
                          .capability = capability,
                          .data = cubin_.data.data(),
                          .bytes = std::ssize(cubin_.data)});
  }
  Status run(const Made& made, std::vector<Tensor>& args) override {
    return runner_->run(made.kernels, args);
  }

 private:
  runtime::testing::DevicePtr device_;
  Cubin cubin_;
  std::optional<KernelRunner> runner_;
};

// Compiles programs by NVRTC, if it is there.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status status = find_nvrtc(); !status.ok())
      GTEST_SKIP() << "skipped: " << status.message();
  }
  void add(const ir::Program& program) {
    PrintOptions options;
    options.symbol_prefix = fmt::format("k{}", added_);
    const auto kernels = printer_.add(program, options);
    // The rest is left out: statements that there is no code for so far.
    if (!kernels.ok() && kernels.status().message().find("no code for") != std::string::npos)
      return;
    ASSERT_TRUE(kernels.ok()) << kernels.status().message();
    ++added_;
    kernels_ += kernels->size();
    for (const Kernel& kernel : *kernels) {
      if (has_matrices(program.phases[kernel.phase])) with_matrices_.push_back(kernel.symbol);
    }
  }
  // Returns what was made for the last architecture.
  Cubin expect_compiled(const std::vector<std::string>& architectures = {"sm_80", "sm_90a"}) {
    Cubin last;
    for (const std::string& arch : architectures) {
      Result<Cubin> cubin = compile_cuda(printer_.text(), arch);
      EXPECT_TRUE(cubin.ok()) << cubin.status().message() << "\n" << printer_.text();
      if (!cubin.ok()) continue;
      EXPECT_TRUE(
          cubin->data.starts_with("\x7f"
                                  "ELF"));
      EXPECT_EQ(cubin->kernels.size(), kernels_);
      for (const std::string& symbol : with_matrices_)
        EXPECT_GT(count_instructions(cubin->data, symbol).value().matrix, 0) << symbol;
      last = *std::move(cubin);
    }
    return last;
  }
  // Forgets what was added, which then is compiled for no other architecture.
  void start_over() {
    added_ = 0;
    printer_ = SourcePrinter(Dialect::kCuda);
    kernels_ = 0;
    with_matrices_.clear();
  }
  int added_ = 0;

 private:
  SourcePrinter printer_ = SourcePrinter(Dialect::kCuda);
  size_t kernels_ = 0;
  std::vector<std::string> with_matrices_;  // kernels that must have matrix instructions
};

}  // namespace hone::backend::gpu::testing
