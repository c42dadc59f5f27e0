// tools/hone/eval_report.h - what `hone eval` says of a cost model: tables, JSON, and what it
// predicted of each schedule.
#pragma once

#include <span>
#include <string>

#include "hone/learn/evaluate.h"

#include "json_text.h"

namespace hone::tool {

struct Printed {
  bool json = false;
  Json replay = {};     // null: none
  Json card = nullptr;  // the model's, likewise
};
void print(const learn::Evaluation& evaluation, const Printed& how);

// A JSON object, a line: the schedules of a task, their measured and their predicted seconds.
[[nodiscard]] std::string predictions_line(const learn::TaskTrials& task,
                                           std::span<const double> predicted);

}  // namespace hone::tool
