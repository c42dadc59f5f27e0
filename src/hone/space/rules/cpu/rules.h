// space/rules/cpu/rules.h - the rules for CPUs, and what they ask of each other (internal to
// space). E is the pointwise epilogue of a reduction R.
#pragma once

#include <span>

#include "hone/space/rules/rule.h"

namespace hone::space {

// Returns the rules that look at the task as it was given (Task::whole), in order.
[[nodiscard]] std::span<const Rule> cpu_task_rules();
// Returns the rules that look at its stages (Task::stages), if no rule takes the task as a whole.
[[nodiscard]] std::span<const Rule> cpu_stage_rules();

// Adds the whole task as reductions along rows and what is computed from them.
[[nodiscard]] Fit add_rows(SketchBuilder& builder, const Task& task);
// Adds the whole task as reductions along few long rows, which are cut into parts. Each stage is a
// phase over the parts.
[[nodiscard]] Fit add_long_rows(SketchBuilder& builder, const Task& task);
// Adds the whole task as attention: softmax of products, times values. Tiling 0 computes all keys
// at once, if their scores fit a cache; tiling n computes one tile of keys after the other, if
// there are enough keys, with the n-th length of a tile.
[[nodiscard]] Fit add_attention(SketchBuilder& builder, size_t tiling);
// Adds the whole task as a depthwise convolution whose result is an operand of a product over its
// channels.
[[nodiscard]] Fit add_separable(SketchBuilder& builder, const Task& task);
// Adds each stage by itself, a reduction with its epilogue.
[[nodiscard]] Fit add_direct(SketchBuilder& builder, const Task& task);
// Adds a task that is a scan of few long rows, each cut into parts for several threads.
[[nodiscard]] Fit add_scan_parts(SketchBuilder& builder, const Task& task);
// Adds R with vector lanes along contiguous terms of the sum.
[[nodiscard]] Fit add_dot(SketchBuilder& builder, const Task& task);
// Adds a product of few columns with vector lanes along rows that are neighbours in memory or are
// packed so.
[[nodiscard]] Fit add_row_lanes(SketchBuilder& builder, const Task& task);
// Adds R with a sum in parts, which run in parallel and are added up in a phase of their own.
[[nodiscard]] Fit add_split_sum(SketchBuilder& builder, const Task& task);
// Adds R with its data first copied into the order of the register tiles.
[[nodiscard]] Fit add_im2col(SketchBuilder& builder, const Task& task);
// Adds a convolution by Winograd's F(outputs, taps).
[[nodiscard]] Fit add_winograd(SketchBuilder& builder, const Task& task, int64_t outputs);
// Adds a product of large matrices by Strassen's algorithm.
[[nodiscard]] Fit add_strassen(SketchBuilder& builder, const Task& task);

// The following functions add a group for a stage of a sketch; they return false, or Fit::kNone, if
// they do not apply. add_contraction() adds R with E by multi-level tiling around a register tile.
[[nodiscard]] bool add_contraction(SketchBuilder& builder, const std::string& epilogue,
                                   const std::string& reduction);
// Adds a pointwise stage with fused, parallel outer loops and one vectorized axis.
[[nodiscard]] bool add_pointwise(SketchBuilder& builder, const std::string& stage);
// Adds an extern stage that is a scan, in which neighbouring points take their steps together.
[[nodiscard]] bool add_scan(SketchBuilder& builder, const std::string& stage);
// Adds any extern stage, with all its axes in parallel.
void add_extern(SketchBuilder& builder, const std::string& stage);
// Adds any stage, with only its outermost spatial axis in parallel.
void add_fallback(SketchBuilder& builder, const std::string& stage);

}  // namespace hone::space
