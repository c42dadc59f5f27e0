// session/assemble_limited.h - assembles a model whose shapes vary from run to run.
#pragma once

#include "hone/session/assemble.h"
#include "hone/session/model_tasks.h"

namespace hone {

// Replaces schedules by Strassen's algorithm, which computes sums of rows: those that a run does
// not have may be NaN. The others of a task's space are compared by prediction.
[[nodiscard]] Status keep_rows_apart(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                     const CompileOptions& options);

// A model whose kernels are told apart by what they may leave out, with these schedules.
struct LimitedModel {
  LimitedTasks split;
  std::vector<schedule::Steps> steps;            // one per group of `split`
  std::vector<std::optional<ir::RunNeed>> runs;  // as CallLimits::runs
};
[[nodiscard]] Result<LimitedModel> limit_model(const ModelTasks& model,
                                               std::span<const schedule::Steps> schedules);
// Returns whether kernels may leave out what a run does not need: its sizes vary, or data decide
// how many elements there are.
[[nodiscard]] bool has_sizes(const ModelTasks& model);
// Returns whether kernels may have other schedules for smaller sizes.
[[nodiscard]] bool has_variants(const ModelTasks& model, const CompileOptions& options);
// Returns the facts on which the variants of a group of `limited` depend. The result points into
// the model, and has the times that load_size_times() has read.
[[nodiscard]] VariantContext variant_context(const ModelTasks& model, const LimitedModel& limited,
                                             size_t group, const CompileOptions& options);
// The kernels whose variants are wanted.
struct VariantScope {
  std::optional<size_t> only;  // those of a group of the model; nothing: all
  bool may_replace = true;     // variants may take the place of the kernels' own schedules
};
// Returns the variants of each group of `limited`; those that are not wanted have none.
[[nodiscard]] std::vector<SizeVariants> variants_of_groups(const ModelTasks& model,
                                                           const LimitedModel& limited,
                                                           const CompileOptions& options,
                                                           const VariantScope& scope = {});
// Reads what the session's store has of the model's tasks at smaller sizes, but for excluded ones.
[[nodiscard]] Status load_size_times(const ModelTasks& model);

// Assembles the model so that each kernel computes only what the sizes of a run need
// (session/limit_tasks.h).
[[nodiscard]] Result<Assembly> assemble_limited(ModelTasks& model,
                                                std::span<const schedule::Steps> schedules,
                                                const CompileOptions& options,
                                                const TogetherOptions& together);

}  // namespace hone
