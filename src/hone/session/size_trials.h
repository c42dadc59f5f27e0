// session/size_trials.h - which schedules of a kernel are worth measuring in runs of smaller sizes,
// and at which sizes.
#pragma once

#include <span>
#include <vector>

#include "hone/session/size_variants.h"

namespace hone {

struct SizeTrials {
  // Those of an element read the same weights; the first element has the kernel's own schedule, as
  // its first one.
  std::vector<std::vector<schedule::Steps>> layouts;
  std::vector<std::vector<int64_t>> sizes;  // values of the forms, the largest sizes last
  [[nodiscard]] size_t schedules() const;   // the number of schedules in all layouts
};

// Chooses them: what choose_variants() would take, the best predicted ones of each size, `more`,
// such as the best few for the largest size, and what was measured before; and where weights may
// lie otherwise, a few that want that. There are none if nothing of the kernel varies.
[[nodiscard]] SizeTrials choose_size_trials(const graph::TaskCall& call, const Task& task,
                                            const schedule::Steps& own, const KernelLimits& limits,
                                            const VariantContext& context,
                                            std::span<const schedule::Steps> more);

}  // namespace hone
