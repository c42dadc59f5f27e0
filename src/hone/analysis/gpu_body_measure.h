// analysis/gpu_body_measure.h - measures of stages with a body of statements on a GPU (internal to
// analysis). What their loops and loads cost is counted from the statements; conditions that
// depend on data count as half, and loops whose length does as kUnknownLength.
#pragma once

#include "hone/analysis/gpu_measure.h"

namespace hone::analysis {

// Returns a launch for each stage with a body, without what the device makes of its registers.
[[nodiscard]] std::vector<GpuRootMeasure> measure_bodies(const schedule::State& state,
                                                         const schedule::Bounds& bounds,
                                                         const target::Gpu& gpu);

}  // namespace hone::analysis
