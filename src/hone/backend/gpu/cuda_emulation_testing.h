// backend/gpu/cuda_emulation_testing.h - for tests: runs printed CUDA C on this machine. The
// compiler that has built Hone compiles the text; of it, only inline assembler and the declaration
// of shared memory that a launch gives are replaced, by calls of functions that do what the PTX ISA
// says (emulated_ptx_testing.h). docs/contributor/devices.md says what that proves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hone/backend/gpu/emulated_block_testing.h"
#include "hone/backend/gpu/print_c.h"
#include "hone/base/file.h"
#include "hone/tensor/tensor.h"

namespace hone::backend::gpu::testing {

// Returns the text with calls in place of inline assembler, whose operands are in the order in
// which the instruction has them: asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)) becomes
// hone::backend::gpu::emulated::ptx::cvt_rn_f16_f32(ptx::h(bits), ptx::f(x)).
[[nodiscard]] Result<std::string> without_assembler(const std::string& text);

class CudaEmulation {
 public:
  // Plain code is made in half of the time of optimised code, which is for long runs. The
  // sanitizers see each access to memory that the text has, as the compiler leaves none out.
  enum class Build : uint8_t { kPlain, kOptimised };
  // Compiles text with kernels of these names.
  [[nodiscard]] static Result<CudaEmulation> compile(const std::string& text,
                                                     const std::vector<std::string>& symbols,
                                                     Build build = Build::kPlain);
  CudaEmulation(CudaEmulation&& other) noexcept;
  CudaEmulation& operator=(CudaEmulation&&) = delete;
  ~CudaEmulation();

  // Runs a kernel of a program on its arguments: first its second half of tiles, then the first.
  [[nodiscard]] Status run(const ir::Program& program, const Kernel& kernel,
                           std::vector<Tensor>& args, const emulated::Schedule& schedule) const;

 private:
  explicit CudaEmulation(TempDir folder) : folder_(std::move(folder)) {}
  Status load(const std::string& library);

  TempDir folder_;
  void* library_ = nullptr;
};

}  // namespace hone::backend::gpu::testing
