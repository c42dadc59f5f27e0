// graph/passes/patterns.h - the rules of recognize_patterns(): each finds one decomposed operator.
#pragma once

#include "hone/graph/passes/rewrite.h"

namespace hone::graph {

[[nodiscard]] std::span<const Rule> activation_patterns();
[[nodiscard]] std::span<const Rule> norm_patterns();

}  // namespace hone::graph
