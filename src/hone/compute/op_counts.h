// compute/op_counts.h - counts the arithmetic of one point of a stage.
#pragma once

#include "hone/compute/dag.h"

namespace hone::compute {

// The number of operations in one point of a stage.
struct OpCounts {
  double fma = 0, add = 0, mul = 0, div = 0, compare = 0, select = 0, math = 0, integer = 0;
};
// Adds so many times the counts of `one`. A negative number of products, which is that of those
// that became multiply-adds, counts as none.
void accumulate(OpCounts& sum, const OpCounts& one, double times);
[[nodiscard]] OpCounts count_ops(const Stage& stage);

// Returns, per axis and then per reduce axis, whether the condition of a select depends on it.
[[nodiscard]] std::vector<bool> tested_axes(const Stage& stage);

}  // namespace hone::compute
