// compute/op_counts.h - the arithmetic of one point of a stage, and what it tests.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// Operations of one point of a stage.
struct OpCounts {
  double fma = 0, add = 0, mul = 0, div = 0, compare = 0, select = 0, math = 0, integer = 0;
};
[[nodiscard]] OpCounts count_ops(const Stage& stage);

// The axes, then reduce axes, that the condition of a select depends on.
[[nodiscard]] std::vector<bool> tested_axes(const Stage& stage);

}  // namespace hone::compute
