// sensitivity.h - measures the sensitivity of graphs that are imported already. Models in files are
// measured by hone/sensitivity.h.
#pragma once

#include "hone/sensitivity.h"
#include "hone/session/model_tasks.h"

namespace hone {

[[nodiscard]] Result<SensitivityReport> measure_sensitivity(std::vector<graph::Graph> graphs,
                                                            const SensitivityOptions& options);

}  // namespace hone
