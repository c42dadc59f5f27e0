// codegen/llvm/backend.h - from an LLVM module to an object file, for a target described as data.
#pragma once

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/target/target.h"

namespace hone::codegen {

// What a kernel does is in a function of its own: the symbol of the phase with this behind it.
inline constexpr const char* kBodySuffix = "_body";

// Makes LLVM's targets known, once a process.
void initialize_targets();
// "+avx2,-avx512f"
[[nodiscard]] std::string feature_string(const target::Target& target);
// Whether code for it may use 512-bit vectors, their masks and their permutations.
[[nodiscard]] bool has_avx512(const target::Target& target);
// Whether AVX2's registers and their permutations are the widest that it may use.
[[nodiscard]] bool has_avx2_at_most(const target::Target& target);
// Whether the processor converts between float and half by itself.
[[nodiscard]] bool converts_half(const target::Target& target);
// Sets triple and data layout; needed before any code is emitted into the module.
[[nodiscard]] Status prepare_module(llvm::Module& module, const target::Target& target);
// The short list of passes.
void optimize(llvm::Module& module, const target::Target& target);
[[nodiscard]] Result<std::string> emit_object(llvm::Module& module, const target::Target& target);
[[nodiscard]] Result<std::string> emit_assembly(const llvm::Module& module,
                                                const target::Target& target);
// Bytes of executable sections.
[[nodiscard]] Result<int64_t> text_bytes(const std::string& object);
// The names that an object uses and does not define, in order.
[[nodiscard]] Result<std::vector<std::string>> undefined_symbols(const std::string& object);

}  // namespace hone::codegen
