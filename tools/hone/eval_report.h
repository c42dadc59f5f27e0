// tools/hone/eval_report.h - what `hone eval` says of a cost model: tables, JSON, and what it
// predicted of each schedule.
#pragma once

#include <string>

#include "hone/evaluate.h"

namespace hone::tool {

void print(const Evaluation& evaluation, bool json);

// Returns a JSON object on a line: the schedules of a task, their measured and predicted seconds.
[[nodiscard]] std::string predictions_line(const TaskPrediction& task);

}  // namespace hone::tool
