// runtime/cpu_features.h - tells which features this CPU and its operating system support,
// by LLVM's names ("avx2", "avx512f"). Vector features count only if the system saves the
// registers.
#pragma once

namespace hone::runtime {

enum class FeatureState { kPresent, kAbsent, kUnknown };  // kUnknown: the name cannot be checked
[[nodiscard]] FeatureState cpu_feature(const char* name);

}  // namespace hone::runtime
