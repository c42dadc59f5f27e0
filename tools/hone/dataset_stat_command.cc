// hone dataset stat: what a data set holds and how far its times can be trusted.
#include <algorithm>
#include <map>
#include <set>

#include "hone/cost/net/train.h"
#include "hone/db/copy.h"
#include "hone/db/registry.h"
#include "hone/learn/bound_scores.h"
#include "hone/trial/statistics.h"

#include "command.h"
#include "command_files.h"
#include "dataset_load.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr size_t kManySchedules = 500;  // what a task to judge a model by is to have
constexpr size_t kBoundSamples = 4;     // schedules of a task that bound scores are taken of

struct Counts {
  int64_t records = 0;
  std::set<uint64_t> tasks;
};

struct Stat {
  int64_t records = 0, disturbed = 0;
  std::map<std::string, Counts> devices, classes, models;
  std::map<std::string, int64_t> outcomes;
  std::map<int, int64_t> repeats;  // samples of a record
  std::vector<double> widths;      // half an interval / centre
  std::set<uint64_t> tasks;
};

Status count(const std::string& db, Stat& stat) {
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(db, {.read_only = true, .create = false}));
  return db::for_each_record(*store, {}, [&](trial::Record&& record) {
    ++stat.records;
    stat.tasks.insert(record.task);
    const std::string device = fmt::format("{}/{}", record.device, record.threads);
    for (Counts* counts : {&stat.devices[device], &stat.classes[record.kernel_class],
                           &stat.models[record.model.empty() ? "-" : record.model]}) {
      ++counts->records;
      counts->tasks.insert(record.task);
    }
    ++stat.outcomes[std::string(trial::outcome_name(record.outcome))];
    if (record.outcome != trial::Outcome::kOk) return ok_status();
    ++stat.repeats[static_cast<int>(record.times.size())];
    if (record.centre > 0 && record.times.size() > 1)
      stat.widths.push_back((record.high - record.low) / 2 / record.centre);
    stat.disturbed += record.others > 0.25;
    return ok_status();
  });
}

// Of each task, device and number of threads.
struct Spread {
  int64_t slots = 0, many = 0, schedules = 0, left_out = 0, outliers = 0;
  int64_t bad_times = 0, single = 0;
  std::vector<double> median, worst;  // relative to the best
  double reliable = 0;                // share of pairs, mean over slots
  double memory = 0, core = 0;        // bound scores, means over slots
  int64_t scored = 0;
  int64_t asked = 0, counted = 0;  // schedules: all, those with hardware counters
};

void add_bounds(const learn::TaskTrials& task, const target::Target& target, Spread& spread) {
  const size_t step = std::max<size_t>(1, task.trials.size() / kBoundSamples);
  double memory = 0, core = 0;
  int count = 0;
  for (size_t i = 0; i < task.trials.size(); i += step) {
    const auto candidate = space::make_candidate(*task.dag, task.trials[i].steps);
    if (!candidate.ok()) continue;
    const learn::BoundScores scores =
        learn::bound_scores({&*candidate, &target, task.threads, task.key}, task.trials[i].counted);
    ++spread.asked, spread.counted += task.trials[i].counted.has_value();
    memory += scores.memory, core += scores.core, ++count;
  }
  if (count == 0) return;
  spread.memory += memory / count, spread.core += core / count, ++spread.scored;
}

void add(const learn::Dataset& dataset, Spread& spread) {
  const Result<target::Target> target = target::of_key(dataset.device);
  spread.left_out += dataset.left_out, spread.outliers += dataset.outliers;
  spread.bad_times += dataset.bad_times, spread.single += dataset.small_tasks;
  for (const learn::TaskTrials& task : dataset.tasks) {
    std::vector<double> seconds;
    for (const learn::MeasuredSteps& trial : task.trials) seconds.push_back(trial.seconds);
    std::sort(seconds.begin(), seconds.end());
    int64_t reliable = 0;
    for (size_t i = 0; i < seconds.size(); ++i) {
      const auto far =
          std::upper_bound(seconds.begin(), seconds.end(), cost::net::kReliableRatio * seconds[i]);
      reliable += seconds.end() - far;
    }
    const double n = static_cast<double>(seconds.size());
    ++spread.slots;
    spread.many += seconds.size() >= kManySchedules;
    spread.schedules += std::ssize(seconds);
    spread.reliable += static_cast<double>(reliable) / (n * (n - 1) / 2);
    spread.median.push_back(trial::median(seconds) / seconds.front());
    spread.worst.push_back(seconds.back() / seconds.front());
    if (target.ok()) add_bounds(task, *target, spread);
  }
}

double median_of(const std::vector<double>& values) {
  return values.empty() ? 0 : trial::median(values);
}

Json to_json(const std::map<std::string, Counts>& all) {
  Json json = Json::object();
  for (const auto& [name, counts] : all)
    json[name] = {{"records", counts.records}, {"tasks", counts.tasks.size()}};
  return json;
}

Json to_json(const Stat& stat, const Spread& spread) {
  Json repeats = Json::object();
  for (const auto& [samples, records] : stat.repeats) repeats[std::to_string(samples)] = records;
  const double slots = static_cast<double>(std::max<int64_t>(spread.slots, 1));
  const double scored = static_cast<double>(std::max<int64_t>(spread.scored, 1));
  return {{"records", stat.records},
          {"tasks", stat.tasks.size()},
          {"task_device_threads", spread.slots},
          {"with_500_schedules", spread.many},
          {"schedules", spread.schedules},
          {"left_out", spread.left_out},
          {"outliers", spread.outliers},
          {"bad_times", spread.bad_times},
          {"single_schedules", spread.single},
          {"outcomes", stat.outcomes},
          {"samples", std::move(repeats)},
          {"interval_half_width", median_of(stat.widths)},
          {"measured_on_busy_machine", stat.disturbed},
          {"median_over_best", median_of(spread.median)},
          {"worst_over_best", median_of(spread.worst)},
          {"reliable_pairs", spread.reliable / slots},
          {"bound_scores",
           {{"source", learn::bounds_source(spread.counted, spread.asked)},
            {"memory", spread.memory / scored},
            {"core", spread.core / scored}}},
          {"devices", to_json(stat.devices)},
          {"kernels", to_json(stat.classes)},
          {"models", to_json(stat.models)}};
}

void print(const Stat& stat, const Spread& spread) {
  fmt::print("{} records of {} tasks\n", stat.records, stat.tasks.size());
  const double slots = static_cast<double>(std::max<int64_t>(spread.slots, 1));
  const double scored = static_cast<double>(std::max<int64_t>(spread.scored, 1));
  fmt::print(
      "{} schedules usable, of {} combinations of task, device and threads, {} of them with "
      "{} or more\n",
      spread.schedules, spread.slots, spread.many, kManySchedules);
  fmt::print(
      "times: the median schedule takes {:.1f} times the best, the worst {:.0f} times; {:.0f} "
      "% of pairs differ by more than {:.0f} %\n",
      median_of(spread.median), median_of(spread.worst), 100 * spread.reliable / slots,
      100 * (cost::net::kReliableRatio - 1));
  fmt::print(
      "noise: intervals of +-{:.1f} % (median); {} records measured while other programs used "
      "a quarter of the machine; left out: {} outliers, {} unreadable, {} without a positive time, "
      "{} combinations with a single schedule\n",
      100 * median_of(stat.widths), stat.disturbed, spread.outliers, spread.left_out,
      spread.bad_times, spread.single);
  fmt::print("bound by memory {:.2f}, by arithmetic {:.2f} ({})\n", spread.memory / scored,
             spread.core / scored, learn::bounds_source(spread.counted, spread.asked));
  Table table({"", "", "records", "tasks"}, 2);
  const auto add_rows = [&](const char* what, const std::map<std::string, Counts>& all) {
    for (const auto& [name, counts] : all)
      table.add({what, shorten(name, 50), std::to_string(counts.records),
                 std::to_string(counts.tasks.size())});
  };
  for (const auto& [name, records] : stat.outcomes)
    table.add({"outcome", name, std::to_string(records), ""});
  for (const auto& [samples, records] : stat.repeats)
    table.add({"samples", std::to_string(samples), std::to_string(records), ""});
  add_rows("device", stat.devices);
  add_rows("model", stat.models);
  add_rows("kernel", stat.classes);
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
            Stat stat;
            HONE_RETURN_IF_ERROR(count(texts->db, stat));
            HONE_ASSIGN_OR_RETURN(const std::vector<learn::Dataset> datasets,
                                  load_all_devices(texts->db));
            Spread spread;
            for (const learn::Dataset& one : datasets) add(one, spread);
            if (texts->json)
              fmt::print("{}", json_text(to_json(stat, spread)));
            else
              print(stat, spread);
            return ok_status();
          },
          [texts](FileRoles& files) {
            add_database_files("--db", texts->db, DatabaseUse::kRead, files);
          }};
}

}  // namespace hone::tool
