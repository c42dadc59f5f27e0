// space/rules/cpu/rules.h - the rules for CPUs, and what they ask of each other (internal to
// space). E is the pointwise epilogue of a reduction R.
#pragma once

#include <span>

#include "hone/space/rules/rule.h"

namespace hone::space {

// Those that look at the task as it came, in order.
[[nodiscard]] std::span<const Rule> cpu_task_rules();
// Those that look at its stages (Task::stages), where no rule takes the task as a whole.
[[nodiscard]] std::span<const Rule> cpu_stage_rules();
// Makes Task::stages of Task::whole, and says whether these are one reduction with its epilogue.
[[nodiscard]] Status simplify(Task& task);

// The whole task as reductions along rows with what is computed of them.
[[nodiscard]] Fit add_rows(SketchBuilder& builder, const Task& task);
// The same where rows are few and long: in parts, each stage a phase over them.
[[nodiscard]] Fit add_long_rows(SketchBuilder& builder, const Task& task);
// The whole task as attention: softmax of products, times values; of all keys, where their scores
// fit a cache (tiling 0), or of one tile of keys after the other, where there are enough (tiling n:
// by the n-th length of a tile).
[[nodiscard]] Fit add_attention(SketchBuilder& builder, size_t tiling);
// The whole task as a depthwise convolution whose result a product over the channels takes.
[[nodiscard]] Fit add_separable(SketchBuilder& builder, const Task& task);
// Each stage by itself, a reduction with its epilogue.
[[nodiscard]] Fit add_direct(SketchBuilder& builder, const Task& task);
// A scan of few long rows, each in parts for several threads; the whole Dag.
[[nodiscard]] Fit add_scan_parts(SketchBuilder& builder, const Task& task);
// R with its lanes along contiguous elements of the sum.
[[nodiscard]] Fit add_dot(SketchBuilder& builder, const Task& task);
// A product of few columns with its lanes along rows that lie side by side or are packed so.
[[nodiscard]] Fit add_row_lanes(SketchBuilder& builder, const Task& task);
// R in parts of the sum that run in parallel and are added up in a phase of their own.
[[nodiscard]] Fit add_split_sum(SketchBuilder& builder, const Task& task);
// R with its data copied into the order of the register tiles first.
[[nodiscard]] Fit add_im2col(SketchBuilder& builder, const Task& task);
// A convolution by Winograd's F(outputs, taps).
[[nodiscard]] Fit add_winograd(SketchBuilder& builder, const Task& task, int64_t outputs);
// A product of large matrices by Strassen's algorithm.
[[nodiscard]] Fit add_strassen(SketchBuilder& builder, const Task& task);

// Parts of a sketch: each adds a group for a stage, or returns false if it does not apply.
// R with E: multi-level tiling around a register tile.
[[nodiscard]] bool add_contraction(SketchBuilder& builder, const std::string& epilogue,
                                   const std::string& reduction);
struct DotOptions {
  std::string packed = {};  // the stage that makes the constant operand; "": one is made if it can
  int fixed = 0;            // so many of E's leading axes stay untiled
};
[[nodiscard]] Fit add_dot_sum(SketchBuilder& builder, const std::string& epilogue,
                              const std::string& reduction, const DotOptions& options);
// A pointwise stage: fused outer loops in parallel, one axis vectorized.
[[nodiscard]] bool add_pointwise(SketchBuilder& builder, const std::string& stage);
// An extern stage that is a scan: neighbouring points take their steps together.
[[nodiscard]] bool add_scan(SketchBuilder& builder, const std::string& stage);
// Any extern stage: all its axes in parallel.
void add_extern(SketchBuilder& builder, const std::string& stage);
// Anything: the outermost spatial axis in parallel, nothing else.
void add_fallback(SketchBuilder& builder, const std::string& stage);

}  // namespace hone::space
