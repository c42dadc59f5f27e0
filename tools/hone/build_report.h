// tools/hone/build_report.h - what `compile` and `tune` say when they are done, of the model and of
// each task.
#pragma once

#include <string>

#include "hone/summary.h"

#include "json_text.h"
#include "limits.h"

namespace hone::tool {

// Per distinct kernel: how often it occurs, where its schedule comes from, its time.
[[nodiscard]] std::string kernel_table(const CompileSummary& summary, const Limits& limits);
// The same of the kernels that take longest, and a line that says how many others there are.
[[nodiscard]] std::string short_kernel_table(const CompileSummary& summary, const Limits& limits);
// Where the schedules come from, by number of kernels; a line of its own for each transferred one,
// or for the first few if not `all`.
[[nodiscard]] std::string coverage(const CompileSummary& summary, bool all = true);
// What --refine chose anew, and how long that took; "" without it.
[[nodiscard]] std::string refined(const CompileSummary& summary);
// How many kernels run together; "" if none do.
[[nodiscard]] std::string turns(const CompileSummary& summary);
// Which sizes a run may have, how to change that, and how many kernels have other schedules for
// smaller ones; "" if no shape varies.
[[nodiscard]] std::string ranges(const CompileSummary& summary);
// What the check of the finished library found.
[[nodiscard]] std::string check_line(const CheckSummary& check);
[[nodiscard]] Json to_json(const CompileSummary& summary, const Limits& limits);
// What both and `show` and `explain` say of a task.
[[nodiscard]] Json to_json(const TaskSummary& task, const Limits& limits);

}  // namespace hone::tool
