// tools/hone/size_report.h - what is said of models whose shapes vary: which schedule of a kernel
// runs at which sizes, and which of the times that decide were measured.
#pragma once

#include <span>
#include <string>

#include "hone/summary.h"

#include "json_text.h"

namespace hone::tool {

// All that is known of a task: for each of its kernels the schedules, their times and their steps;
// "" if it has no TaskSummary::sizes.
[[nodiscard]] std::string sizes_text(const TaskSummary& task);
// A line for each kernel of the tasks, which have the numbers 1, 2, ...; "" if there are none.
[[nodiscard]] std::string sizes_table(std::span<const TaskSummary> tasks);
// How many kernels have schedules of their own for smaller sizes; "" if no shape varies.
[[nodiscard]] std::string sizes_line(std::span<const TaskSummary> tasks);
[[nodiscard]] Json to_json(const SizeTable& table);
[[nodiscard]] Json sizes_json(const TaskSummary& task);

}  // namespace hone::tool
