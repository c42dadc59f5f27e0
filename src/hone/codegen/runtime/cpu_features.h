// codegen/runtime/cpu_features.h - what this CPU and its operating system can execute, by LLVM's
// names of features ("avx2", "avx512f"). Vector features count only if the system saves the
// registers.
#pragma once

namespace hone::runtime {

enum class FeatureState { kPresent, kAbsent, kUnknown };  // unknown: a name that cannot be checked
[[nodiscard]] FeatureState cpu_feature(const char* name);

}  // namespace hone::runtime
