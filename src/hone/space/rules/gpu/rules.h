// space/rules/gpu/rules.h - the rules for GPUs, and what they ask of each other (internal to
// space). E is the pointwise epilogue of a reduction R.
#pragma once

#include <span>

#include "hone/space/rules/roots.h"

namespace hone::space {

// Returns the rules that look at the task as it was given (Task::whole), in order.
[[nodiscard]] std::span<const Rule> gpu_task_rules();
// Returns the rules that look at its stages (Task::stages), if no rule takes the task as a whole.
[[nodiscard]] std::span<const Rule> gpu_stage_rules();

// Adds an attention as one nest, a block for a tile of queries of a head.
[[nodiscard]] Fit add_gpu_attention(SketchBuilder& builder, const Task& task);
// Does the same with keys in tiles, over which maxima and sums run.
[[nodiscard]] Fit add_gpu_attention_tiles(SketchBuilder& builder, const Task& task);
// Does the same with products by matrix instructions.
[[nodiscard]] Fit add_gpu_attention_matrix(SketchBuilder& builder, const Task& task);
// Adds the whole task as reductions along rows, which a block's threads divide, and what is
// computed from them.
[[nodiscard]] Fit add_block_rows(SketchBuilder& builder, const Task& task);
// Adds a scan along long rows, in parts.
[[nodiscard]] Fit add_gpu_scan(SketchBuilder& builder, const Task& task);
// Adds a body that copies and then updates, such as a scatter, as the copy and the updates, which
// threads share.
[[nodiscard]] Fit add_updates(SketchBuilder& builder, const Task& task);
// Adds a body that the threads of a block run together for each of its points, such as top-k.
[[nodiscard]] Fit add_block_bodies(SketchBuilder& builder, const Task& task);
// Adds each stage by itself, or R with E, with points that each thread computes alone.
[[nodiscard]] Fit add_points(SketchBuilder& builder, const Task& task);

// Adds each stage by itself, or R with E, with reductions of windows in tiles of registers, those
// of reused operands in tiles of blocks, threads and registers, others in rows, and transposes in
// tiles of shared memory.
[[nodiscard]] Fit add_tiles(SketchBuilder& builder, const Task& task);

// Does the same with what windows slide over in shared memory, if there is such a reduction.
[[nodiscard]] Fit add_shared_windows(SketchBuilder& builder, const Task& task);

// Adds a convolution by Winograd's algorithm, with tiles of `outputs` results in each dimension.
[[nodiscard]] Fit add_gpu_winograd(SketchBuilder& builder, const Task& task, int64_t outputs);

// Returns whether the target has matrix instructions.
[[nodiscard]] bool has_matrix_instructions(const Task& task);
// Adds what add_tiles() does, with sums of products by matrix instructions where there are some for
// their type and the accuracy allows it.
[[nodiscard]] Fit add_matrix_tiles(SketchBuilder& builder, const Task& task);

// Returns the roots of a task such that each reduction of one result is computed inside of another
// stage: of several that one stage reads, that with most terms is, and the others get a copy.
[[nodiscard]] std::vector<Root> roots_with_sums(SketchBuilder& builder);
// Returns the axis whose results are neighbours in memory, or the last one with several points.
[[nodiscard]] int column_of(const schedule::StageInfo& e);

// Lays a constant that R reads out anew, at compile time, if neighbouring results do not read
// neighbours of it. Returns the name of the buffer that R then reads; "" if that is illegal.
[[nodiscard]] std::string pack_constant(SketchBuilder& builder, const std::string& reduction,
                                        const compute::Access& read, int column);

// Adds R with E by matrix instructions; returns false and leaves the builder as it was if there are
// none for them.
[[nodiscard]] bool add_matrix_product(SketchBuilder& builder, const std::string& epilogue,
                                      const std::string& reduction, trial::Accuracy accuracy);
// Adds R with E in such tiles; returns false if they have no reuse, after which the builder may
// have steps that change nothing.
[[nodiscard]] bool add_contraction_tiles(SketchBuilder& builder, const std::string& epilogue,
                                         const std::string& reduction);
// Adds R with E, and returns true, if R reduces windows that slide over an operand, as depthwise
// convolutions and pools do: in tiles of registers, from global memory or, if it `shares`, from a
// box in shared memory. After false, as where no tile fits the registers, the builder is as it was.
[[nodiscard]] bool add_stage_windows(SketchBuilder& builder, const std::string& epilogue,
                                     const std::string& reduction, bool shares);
// Adds a pointwise stage with tiles in shared memory, and returns true, if operands and results lie
// in different orders.
[[nodiscard]] bool add_stage_transposes(SketchBuilder& builder, const std::string& stage);
// Adds R with E as rows that a block's threads divide, and returns true, if that suits them better
// than points.
[[nodiscard]] bool add_stage_rows(SketchBuilder& builder, const std::string& epilogue,
                                  const std::string& reduction);
// Adds R with E in two launches, and returns true, if it has so few results that one launch would
// leave most of the device idle: blocks reduce parts of rows, and then the parts. After false the
// builder may have steps that change nothing.
[[nodiscard]] bool add_divided_rows(SketchBuilder& builder, const std::string& epilogue,
                                    const std::string& reduction);
// Adds a group for a stage of a sketch, of any kind, and for the reduction that is computed inside
// of it, if there is one.
void add_stage_points(SketchBuilder& builder, const std::string& stage,
                      const std::string& reduction);

}  // namespace hone::space
