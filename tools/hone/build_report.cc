#include "build_report.h"

#include <algorithm>

#include "table.h"

namespace hone::tool {

std::string kernel_table(const CompileSummary& summary) {
  Table table({"kernel", "first node", "schedule", "times", "trials", "default", "best", "GFLOP/s"},
              3);
  for (const TaskSummary& task : summary.tasks) {
    const double best = task.seconds > 0 ? task.seconds : task.predicted_seconds;
    const std::string time = task.seconds > 0 ? format_seconds(best) : "~" + format_seconds(best);
    table.add({shorten(task.kernel_class, 36), shorten(task.name, 28), task.source,
               std::to_string(task.multiplicity), std::to_string(task.trials),
               format_seconds(task.default_seconds), best > 0 ? time : "-",
               best > 0 ? fmt::format("{:.1f}", task.flops / best * 1e-9) : "-"});
  }
  return table.text();
}

std::string coverage(const CompileSummary& summary) {
  std::string text, counts;
  const std::pair<const char*, const char*> kinds[] = {{"tuned", "tuned now"},
                                                       {"stored", "of their own records"},
                                                       {"transferred", "of other kernels' records"},
                                                       {"predicted", "the best predicted"},
                                                       {"default", "the default"}};
  for (const auto& [source, meaning] : kinds) {
    const auto count =
        std::count_if(summary.tasks.begin(), summary.tasks.end(),
                      [&](const TaskSummary& task) { return task.source == source; });
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, meaning);
  }
  for (const TaskSummary& task : summary.tasks) {
    if (task.source == "transferred")
      text += fmt::format("{} {}: from {}\n", task.kernel_class, shorten(task.name, 28), task.from);
  }
  return text + fmt::format("schedules of {} kernels: {}\n", summary.tasks.size(), counts);
}

Json to_json(const CompileSummary& summary) {
  Json json = {
      {"seconds", summary.seconds}, {"bytes", summary.bytes}, {"arena_bytes", summary.arena_bytes}};
  json["kernels"] = Json::array();
  for (const TaskSummary& task : summary.tasks) {
    json["kernels"].push_back({{"name", task.name},
                               {"kernel", task.kernel_class},
                               {"times", task.multiplicity},
                               {"flops", task.flops},
                               {"source", task.source},
                               {"from", task.from},
                               {"seconds", task.seconds},
                               {"default_seconds", task.default_seconds},
                               {"predicted_seconds", task.predicted_seconds},
                               {"trials", task.trials},
                               {"steps", task.steps}});
  }
  return json;
}

}  // namespace hone::tool
