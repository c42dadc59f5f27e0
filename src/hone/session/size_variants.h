// session/size_variants.h - other schedules of a kernel for runs of smaller sizes than the largest,
// for which its own was chosen: with tiles of fewer rows, or divided otherwise among the threads.
// They read the same packed weights. What a schedule takes at a size is predicted, as in DESIGN.md
// 3.5a.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hone/artifact/artifact.h"
#include "hone/graph/size_form.h"
#include "hone/session/limit_tasks.h"
#include "hone/session/task.h"

namespace hone {

// A schedule for the runs in which a form's value is `from` to `most`.
struct SizeVariant {
  schedule::Steps steps;
  artifact::ArtifactInterval when;
  // Predicted seconds at `most` / those of the kernel's own schedule at the largest size.
  double share = 1;
};

// The schedules of a kernel: its own one for the sizes of `own`, variants for all others.
struct SizeVariants {
  // A schedule that takes the kernel's place, as weights that lie otherwise serve more sizes.
  std::optional<schedule::Steps> replaces_own;
  artifact::ArtifactInterval own;
  std::vector<SizeVariant> others;
};

// The facts beside the kernel on which the choice depends.
struct VariantContext {
  const graph::Varying* varying;
  const target::Target* target;
  trial::Accuracy accuracy;
  int threads;
  uint64_t seed;
  // Returns the seconds of the task with other steps at the largest size, by the session's cost
  // model.
  std::function<double(const schedule::Steps&)> predict;
  // False: the kernel's own schedule was measured, so that it stays and so do its weights.
  bool may_replace = false;
};

// Returns whether a schedule computes sums of rows in place of rows (Winograd, Strassen).
[[nodiscard]] bool mixes_rows(const schedule::Steps& steps);

// Chooses the variants of a kernel with these steps and limits; there are none if its own schedule
// is predicted to be about as good at every size. `call` is one that the kernel runs.
[[nodiscard]] SizeVariants choose_variants(const graph::TaskCall& call, const Task& task,
                                           const schedule::Steps& own, const KernelLimits& limits,
                                           const VariantContext& context);

}  // namespace hone
