// hone dataset stat: what a data set holds and how far its times can be trusted.
#include "hone/dataset.h"

#include "command.h"
#include "command_files.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

using Counts = DatasetStatistics::Counts;

Json to_json(const std::map<std::string, Counts>& all) {
  Json json = Json::object();
  for (const auto& [name, counts] : all)
    json[name] = {{"records", counts.records}, {"tasks", counts.tasks}};
  return json;
}

Json to_json(const DatasetStatistics& stat) {
  Json samples = Json::object();
  for (const auto& [count, records] : stat.samples) samples[std::to_string(count)] = records;
  return {
      {"records", stat.all.records},
      {"tasks", stat.all.tasks},
      {"task_device_threads", stat.combinations},
      {"with_500_schedules", stat.with_many},
      {"schedules", stat.schedules},
      {"left_out", stat.left_out},
      {"outliers", stat.outliers},
      {"bad_times", stat.bad_times},
      {"single_schedules", stat.single_schedules},
      {"outcomes", stat.outcomes},
      {"samples", std::move(samples)},
      {"interval_half_width", stat.interval_half_width},
      {"measured_on_busy_machine", stat.disturbed},
      {"median_over_best", stat.median_over_best},
      {"worst_over_best", stat.worst_over_best},
      {"reliable_pairs", stat.reliable_pairs},
      {"bound_scores",
       {{"source", stat.bounds_source}, {"memory", stat.memory_bound}, {"core", stat.core_bound}}},
      {"devices", to_json(stat.devices)},
      {"kernels", to_json(stat.kernels)},
      {"models", to_json(stat.models)}};
}

void print(const DatasetStatistics& stat) {
  fmt::print("{} records of {} tasks\n", stat.all.records, stat.all.tasks);
  fmt::print(
      "{} schedules usable, of {} combinations of task, device and threads, {} of them with "
      "{} or more\n",
      stat.schedules, stat.combinations, stat.with_many, kManySchedules);
  fmt::print(
      "times: the median schedule takes {:.1f} times the best, the worst {:.0f} times; {:.0f} "
      "% of pairs differ by more than {:.0f} %\n",
      stat.median_over_best, stat.worst_over_best, 100 * stat.reliable_pairs,
      100 * (kReliableRatio - 1));
  fmt::print(
      "noise: intervals of +-{:.1f} % (median); {} records measured while other programs used "
      "a quarter of the machine; left out: {} outliers, {} unreadable, {} without a positive time, "
      "{} combinations with a single schedule\n",
      100 * stat.interval_half_width, stat.disturbed, stat.outliers, stat.left_out, stat.bad_times,
      stat.single_schedules);
  fmt::print("bound by memory {:.2f}, by arithmetic {:.2f} ({})\n", stat.memory_bound,
             stat.core_bound, stat.bounds_source);
  Table table({"", "", "records", "tasks"}, 2);
  const auto add_rows = [&](const char* what, const std::map<std::string, Counts>& all) {
    for (const auto& [name, counts] : all)
      table.add(
          {what, shorten(name, 50), std::to_string(counts.records), std::to_string(counts.tasks)});
  };
  for (const auto& [name, records] : stat.outcomes)
    table.add({"outcome", name, std::to_string(records), ""});
  for (const auto& [samples, records] : stat.samples)
    table.add({"samples", std::to_string(samples), std::to_string(records), ""});
  add_rows("device", stat.devices);
  add_rows("model", stat.models);
  add_rows("kernel", stat.kernels);
  fmt::print("{}", table.text());
}

}  // namespace

Command dataset_stat_command(CLI::App& dataset) {
  struct Texts {
    std::string db;
    bool json = false;
  };
  const auto texts = std::make_shared<Texts>();
  CLI::App* app = dataset.add_subcommand(
      "stat",
      "Show the contents of a data set, the spread of its times and how far they can be trusted");
  add_db(*app, texts->db);
  add_json(*app, texts->json);
  return {app,
          [texts]() -> Status {
            HONE_ASSIGN_OR_RETURN(const DatasetStatistics stat, dataset_statistics(texts->db));
            if (texts->json)
              fmt::print("{}", json_text(to_json(stat)));
            else
              print(stat);
            return ok_status();
          },
          [texts](FileRoles& files) {
            add_database_files("--db", texts->db, DatabaseUse::kRead, files);
          }};
}

}  // namespace hone::tool
