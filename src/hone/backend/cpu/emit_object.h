// backend/cpu/emit_object.h - makes an object file from an LLVM module, for a target that is
// described as data.
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/target/cpu.h"

namespace hone::backend::cpu {

// The work of a kernel is in a separate function, whose name is the symbol of the phase with this
// suffix.
inline constexpr const char* kBodySuffix = "_body";

// Registers LLVM's targets, once per process.
void initialize_targets();
// Returns the features as "+avx2,-avx512f".
[[nodiscard]] std::string feature_string(const target::Cpu& target);
// Returns whether code for the target may use 512-bit vectors with their masks and permutations.
[[nodiscard]] bool has_avx512(const target::Cpu& target);
// Returns whether AVX2's vectors and permutations are the widest that code may use.
[[nodiscard]] bool has_avx2_at_most(const target::Cpu& target);
// Returns whether the processor has instructions that convert between float and half.
[[nodiscard]] bool converts_half(const target::Cpu& target);
// Sets triple and data layout, which must be done before any code is emitted into the module.
[[nodiscard]] Status prepare_module(llvm::Module& module, const target::Cpu& target);
// Runs a short list of LLVM's passes.
void optimize(llvm::Module& module, const target::Cpu& target);
[[nodiscard]] Result<std::string> emit_object(llvm::Module& module, const target::Cpu& target);
[[nodiscard]] Result<std::string> emit_assembly(const llvm::Module& module,
                                                const target::Cpu& target);
// Returns the size of the executable sections.
[[nodiscard]] Result<int64_t> text_bytes(const std::string& object);
// Returns the names that an object uses and does not define, in order.
[[nodiscard]] Result<std::vector<std::string>> undefined_symbols(const std::string& object);

}  // namespace hone::backend::cpu
