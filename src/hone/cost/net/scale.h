// cost/net/scale.h - what a score means in seconds.
#pragma once

#include "hone/cost/net/train.h"

namespace hone::cost::net {

// How much longer the logarithm of a schedule's time is, within a task, for a score that is less by
// one: the slope that fits the rows best, at least kLeastScale. `library` as in NetTraining.
inline constexpr double kLeastScale = 1e-3;
[[nodiscard]] Result<double> log_seconds_per_score(const Net& net, const NetRows& rows,
                                                   const std::string& library = "");

}  // namespace hone::cost::net
