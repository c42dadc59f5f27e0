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

// A size at which the schedules of a kernel were compared.
struct ComparedSize {
  std::vector<int64_t> symbols;
  int64_t value = 0;  // value of the form that decides
  std::vector<double>
      seconds;               // those of SizeVariants::others in their order, then of the last one
  bool is_measured = false;  // else they are predicted
};

// The schedules of a kernel: its own one for the sizes of `own`, variants for all others.
struct SizeVariants {
  // A schedule that takes the kernel's place, as weights that lie otherwise serve the sizes better.
  std::optional<schedule::Steps> replaces_own;
  artifact::ArtifactInterval own;
  std::vector<SizeVariant> others;
  int form = -1;                       // that decides; -1: nothing of the kernel varies
  std::vector<ComparedSize> compared;  // ascending; none if nothing varies
};

// Chooses the variants of a kernel with these steps and limits; there are none if its own schedule
// is predicted to be about as good at every size. `call` is one that the kernel runs.
[[nodiscard]] SizeVariants choose_variants(const graph::TaskCall& call, const Task& task,
                                           const schedule::Steps& own, const KernelLimits& limits,
                                           const VariantContext& context);
// Chooses among these, to which the kernel's own schedule and others were added. `may_reorder` says
// whether weights may lie otherwise than that wants.
[[nodiscard]] SizeVariants choose_variants(SizeCandidates& candidates, bool may_reorder);

}  // namespace hone
