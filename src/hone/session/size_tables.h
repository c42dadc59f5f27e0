// session/size_tables.h - says which schedules of a model's kernels run at which sizes
// (TaskSummary::sizes).
#pragma once

#include "hone/session/assemble_limited.h"

namespace hone {

// Fills the tables of the model's summaries, and sets the schedules there that were replaced for
// the sake of smaller sizes. `variants` and `uses` have an element per group of `limited`; a group
// without a compared size gets no table.
void add_size_tables(const LimitedModel& limited, std::span<const SizeVariants> variants,
                     std::span<const VariantUse> uses, ModelTasks& model);

// Does the same for a model of which no library is written, or for some of its kernels. Kernels
// with variants are compiled, as only their code says whether a library can use them. There are no
// tables if the sizes of the model do not vary or its kernels cannot have variants.
[[nodiscard]] Status find_size_tables(ModelTasks& model, std::vector<schedule::Steps>& schedules,
                                      const CompileOptions& options,
                                      const VariantScope& scope = {});

}  // namespace hone
