// learn/score_scale.h - converts scores to seconds.
#pragma once

#include "hone/cost/net/train.h"

namespace hone::learn {

namespace net = cost::net;

// Returns by how much the log time of a schedule is larger, within a task, if its score is smaller
// by one: the slope that fits the rows best, at least kLeastScale. `library` is as in
// net::NetTraining.
inline constexpr double kLeastScale = 1e-3;
[[nodiscard]] Result<double> log_seconds_per_score(const net::Net& model, const net::NetRows& rows,
                                                   const std::string& library = "");

}  // namespace hone::learn
