#include "build_report.h"

#include <algorithm>
#include <numeric>

#include "hone/base/hash.h"
#include "hone/base/printable.h"

#include "size_report.h"
#include "table.h"

namespace hone::tool {

namespace {

constexpr size_t kShortTable = 5;  // rows

double all_seconds(const TaskSummary& task) {
  return task.known_seconds() * static_cast<double>(task.multiplicity);
}

}  // namespace

std::string short_kernel_table(const CompileSummary& summary, const Limits& limits) {
  if (summary.tasks.size() <= kShortTable + 1) return kernel_table(summary, limits);
  std::vector<size_t> order(summary.tasks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return all_seconds(summary.tasks[a]) > all_seconds(summary.tasks[b]);
  });
  CompileSummary first = summary;
  first.tasks.clear();
  double shown = 0, all = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const TaskSummary& task = summary.tasks[order[i]];
    all += all_seconds(task);
    if (i >= kShortTable) continue;
    shown += all_seconds(task);
    first.tasks.push_back(task);
  }
  const std::string share =
      all > 0 ? fmt::format(", which take {:.0f} % of the time", 100 * (all - shown) / all) : "";
  return kernel_table(first, limits) +
         fmt::format("and {} kernels more{}: -v lists all\n", order.size() - kShortTable, share);
}

std::string kernel_table(const CompileSummary& summary, const Limits& limits) {
  Table table(limits.header({"kernel", "first node", "schedule", "times", "trials", "before",
                             "best", "GFLOP/s"}),
              3);
  for (const TaskSummary& task : summary.tasks) {
    const double best = task.known_seconds();
    const std::string time = task.seconds > 0 ? format_seconds(best) : "~" + format_seconds(best);
    table.add(limits.row({shorten(task.kernel_class, 36), shorten(task.name, 28), task.source,
                          std::to_string(task.multiplicity), std::to_string(task.trials),
                          format_seconds(task.untuned_seconds), best > 0 ? time : "-",
                          best > 0 ? fmt::format("{:.1f}", task.flops / best * 1e-9) : "-"},
                         limits.of(task), task.seconds));
  }
  return table.text();
}

std::string coverage(const CompileSummary& summary, bool all) {
  std::string text, counts;
  const std::pair<const char*, const char*> kinds[] = {
      {"tuned", "tuned now"},
      {"stored", "of their own records"},
      {"shipped", "of records that come with Hone"},
      {"transferred", "of other kernels' records"},
      {"predicted", "the best predicted"},
      {"default", "the default"},
      {"host", "run on the host, as the device cannot run them"}};
  for (const auto& [source, meaning] : kinds) {
    const auto count =
        std::count_if(summary.tasks.begin(), summary.tasks.end(),
                      [&](const TaskSummary& task) { return task.source == source; });
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, meaning);
  }
  size_t transferred = 0;
  for (const TaskSummary& task : summary.tasks) {
    if (task.source != "transferred" || (++transferred > kShortTable && !all)) continue;
    text += fmt::format("{} {}: from {}\n", printable(task.kernel_class), shorten(task.name, 28),
                        printable(task.from));
  }
  if (transferred > kShortTable && !all)
    text += fmt::format("and {} more of other kernels' records\n", transferred - kShortTable);
  const auto stale = std::count_if(summary.tasks.begin(), summary.tasks.end(),
                                   [](const TaskSummary& task) { return task.stale > 0; });
  if (stale > 0) {
    text += fmt::format(
        "records of {} kernels do not apply any more, as another version of Hone made them: tune "
        "the model again\n",
        stale);
  }
  return text + fmt::format("schedules of {} kernels: {}\n", summary.tasks.size(), counts);
}

std::string refined(const CompileSummary& summary) {
  const RefineSummary& found = summary.refined;
  if (found.candidates == 0) return "";
  return fmt::format("--refine: {} of {} kernels got another one of {} schedules, in {}\n",
                     found.changed, found.compared, found.candidates,
                     format_seconds(found.seconds));
}

std::string turns(const CompileSummary& summary) {
  if (summary.turns == summary.calls && summary.small == 0) return "";
  const std::string alone =
      summary.small == 0 ? "" : fmt::format(", {} of them too short for threads", summary.small);
  return fmt::format("a run starts {} kernels in {} turns{}\n", summary.calls, summary.turns,
                     alone);
}

std::string ranges(const CompileSummary& summary) {
  if (summary.ranges.empty()) return "";
  std::string inputs;
  for (const InputRange& input : summary.ranges)
    inputs += fmt::format("{}{} {}", inputs.empty() ? "" : ", ", input.name, input.shape);
  return fmt::format("inputs that vary: {}; for other ranges change {}\n{}", inputs,
                     summary.range_options, sizes_line(summary.tasks));
}

std::string check_line(const CheckSummary& check) {
  if (!check.checked) return fmt::format("not compared with the model: {}\n", check.skipped);
  std::string text = fmt::format(
      "right on {} random inputs: off by {:.1g} of the largest result at most, {:.1g} allowed "
      "({})\n",
      check.inputs, check.worst_error, check.tolerance, format_seconds(check.seconds));
  for (const std::string& output : check.left_out) text += fmt::format("output {}\n", output);
  return text;
}

Json to_json(const CheckSummary& check) {
  Json json = {{"checked", check.checked},
               {"skipped", check.skipped},
               {"seconds", check.seconds},
               {"inputs", check.inputs},
               {"tolerance", check.tolerance},
               {"worst_error", check.worst_error},
               {"left_out", check.left_out},
               {"guilty_pass", ""},
               {"node", ""},
               {"faults", Json::array()}};
  for (const HealedFault& fault : check.healed) {
    json["faults"].push_back({{"what", fault.what},
                              {"pass", fault.pass},
                              {"node", fault.node},
                              {"output", fault.output}});
  }
  if (!check.healed.empty()) {
    json["guilty_pass"] = check.healed.front().pass;
    json["node"] = check.healed.front().node;
  }
  return json;
}

Json to_json(const CompileSummary& summary, const Limits& limits) {
  Json json = {{"seconds", summary.seconds},
               {"bytes", summary.bytes},
               {"arena_bytes", summary.arena_bytes},
               {"memory_bytes", summary.memory_bytes},
               {"calls", summary.calls},
               {"turns", summary.turns},
               {"small", summary.small},
               {"refined",
                {{"compared", summary.refined.compared},
                 {"changed", summary.refined.changed},
                 {"candidates", summary.refined.candidates},
                 {"seconds", summary.refined.seconds}}},
               {"check", to_json(summary.check)},
               {"range_options", summary.range_options}};
  json["ranges"] = Json::array();
  for (const InputRange& input : summary.ranges)
    json["ranges"].push_back({{"input", input.name}, {"shape", input.shape}});
  json["kernels"] = Json::array();
  for (const TaskSummary& task : summary.tasks) {
    Json kernel = to_json(task, limits);
    kernel["from"] = task.from;
    kernel["untuned_seconds"] = task.untuned_seconds;
    kernel["trials"] = task.trials;
    kernel["stale_records"] = task.stale;
    kernel["steps"] = task.steps;
    json["kernels"].push_back(std::move(kernel));
  }
  return json;
}

Json to_json(const TaskSummary& task, const Limits& limits) {
  const Limit limit = limits.of(task);
  return {{"name", task.name},           {"key", hash_hex(task.key)},
          {"kernel", task.kernel_class}, {"times", task.multiplicity},
          {"flops", task.flops},         {"least_flops", task.least_flops},
          {"bytes", task.bytes},         {"limit_seconds", limit.seconds},
          {"limit", limit.what},         {"source", task.source},
          {"seconds", task.seconds},     {"predicted_seconds", task.predicted_seconds},
          {"sizes", sizes_json(task)}};
}

}  // namespace hone::tool
