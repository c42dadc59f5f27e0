// session/size_variants.h - other schedules of a kernel for runs of smaller sizes than the largest,
// for which its own was chosen: with tiles of fewer rows, or divided otherwise among the threads.
// They read the same packed weights. What a schedule takes at a size was measured, if hone::tune()
// did, or is predicted.
#pragma once

#include <optional>
#include <vector>

#include "hone/artifact/artifact.h"
#include "hone/session/size_candidates.h"

namespace hone {

// A schedule for the runs in which a form's value is `from` to `most`.
struct SizeVariant {
  schedule::Steps steps;
  artifact::ArtifactInterval when;
  // Seconds at `most` / those of the kernel's own schedule at the largest size.
  double share = 1;
};

// The schedules of a kernel: its own one for the sizes of `own`, variants for all others.
struct SizeVariants {
  // A schedule that takes the kernel's place, as weights that lie otherwise serve more sizes.
  std::optional<schedule::Steps> replaces_own;
  artifact::ArtifactInterval own;
  std::vector<SizeVariant> others;
};

// Chooses the variants of a kernel with these steps and limits; there are none if its own schedule
// is predicted to be about as good at every size. `call` is one that the kernel runs.
[[nodiscard]] SizeVariants choose_variants(const graph::TaskCall& call, const Task& task,
                                           const schedule::Steps& own, const KernelLimits& limits,
                                           const VariantContext& context);

}  // namespace hone
