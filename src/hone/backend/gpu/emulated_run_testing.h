// backend/gpu/emulated_run_testing.h - for tests: programs whose CUDA C this machine runs, compared
// with the interpreter.
#pragma once

#include <cstring>
#include <optional>

#include "hone/backend/gpu/code_batch_testing.h"
#include "hone/backend/gpu/cuda_emulation_testing.h"

namespace hone::backend::gpu::testing {

class EmulatedCudaTest : public RunTest {
 protected:
  EmulatedCudaTest() : RunTest(Dialect::kCuda) {}
  Status load(const std::string& text) override {
    std::vector<std::string> symbols;
    for (const Made& made : programs()) {
      for (const Kernel& kernel : made.kernels) symbols.push_back(kernel.symbol);
    }
    HONE_ASSIGN_OR_RETURN(CudaEmulation emulation, CudaEmulation::compile(text, symbols));
    emulation_.emplace(std::move(emulation));
    return ok_status();
  }
  // Runs the kernels with copies that arrive as late as they may, then in another order of threads
  // with copies that arrive at once. Both runs must give the same bits.
  Status run(const Made& made, std::vector<Tensor>& args) override {
    std::vector<Tensor> again;
    for (const Tensor& t : args) {
      again.emplace_back(t.dtype(), t.shape());
      if (t.bytes() > 0) std::memcpy(again.back().data(), t.data(), static_cast<size_t>(t.bytes()));
    }
    for (const Kernel& kernel : made.kernels) {
      HONE_RETURN_IF_ERROR(
          emulation_->run(made.program, kernel, args, {.late_copies = true, .last_first = false}));
      HONE_RETURN_IF_ERROR(
          emulation_->run(made.program, kernel, again, {.late_copies = false, .last_first = true}));
    }
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].bytes() > 0 &&
          std::memcmp(args[i].data(), again[i].data(), static_cast<size_t>(args[i].bytes())) != 0)
        return error(Code::kInternal, "{} depends on the order of threads",
                     made.program.params[i].buffer->name);
    }
    return ok_status();
  }

 private:
  std::optional<CudaEmulation> emulation_;
};

// The names of what runs programs, in those of tests of each of them.
struct RunnerName {
  template <typename Runner>
  static std::string GetName(int) {  // NOLINT: the name that GoogleTest calls
    if (std::is_same_v<Runner, OpenClTest>) return "OpenCl";
    return std::is_same_v<Runner, EmulatedCudaTest> ? "Emulation" : "CudaDevice";
  }
};

}  // namespace hone::backend::gpu::testing
