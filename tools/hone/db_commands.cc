#include <algorithm>
#include <map>
#include <tuple>

#include "hone/base/hash.h"
#include "hone/base/printable.h"
#include "hone/database.h"

#include "code_text.h"
#include "command.h"
#include "command_files.h"
#include "json_text.h"
#include "option_texts.h"
#include "record_filter.h"
#include "table.h"

namespace hone::tool {
namespace {

struct DbOptions {
  std::string db;
  RecordFilterTexts filter;
  std::string top = "1";  // of best
  bool json = false;
};

// The trials of one task on one device with one number of threads.
struct Group {
  std::vector<TrialInfo> best;  // verified ones of different schedules, fastest first
  std::string kernel_class;
  int64_t trials = 0, ok = 0;
  int64_t at_sizes = 0;  // trials of parts of the task
  // The last seconds of each part, by schedule.
  std::map<std::string, std::map<std::string, double>> parts;

  void take(TrialInfo&& record, size_t most) {
    const auto same = std::find_if(best.begin(), best.end(), [&](const TrialInfo& other) {
      return other.steps == record.steps;
    });
    if (same != best.end()) {
      if (same->seconds <= record.seconds) return;
      best.erase(same);
    }
    const auto place = std::upper_bound(
        best.begin(), best.end(), record.seconds,
        [](double seconds, const TrialInfo& other) { return seconds < other.seconds; });
    best.insert(place, std::move(record));
    if (best.size() > most) best.pop_back();
  }
};
using GroupKey = std::tuple<uint64_t, std::string, int>;  // task, device, threads

struct Summary {
  std::vector<GroupKey> order;  // as first stored
  std::map<GroupKey, Group> groups;
};

Result<Summary> summarise(const DbOptions& options) {
  HONE_ASSIGN_OR_RETURN(TrialFilter filter, parse_record_filter(options.filter));
  filter.parts = true;
  HONE_ASSIGN_OR_RETURN(const int top, parse_count("--top", options.top, 1, 1000));
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(options.db));
  Summary summary;
  HONE_RETURN_IF_ERROR(database.for_each(filter, [&](TrialInfo&& record) {
    const GroupKey key(record.task, record.device, record.threads);
    const auto [it, added] = summary.groups.try_emplace(key);
    if (added) summary.order.push_back(key);
    Group& group = it->second;
    group.kernel_class = record.kernel_class;
    if (!record.part.empty()) {
      ++group.at_sizes;
      if (record.outcome == "ok") group.parts[record.steps][record.part] = record.seconds;
      return ok_status();
    }
    ++group.trials;
    group.ok += record.outcome == "ok";
    if (record.verified) group.take(std::move(record), static_cast<size_t>(top));
    return ok_status();
  }));
  return summary;
}

Json to_json(const GroupKey& key, const Group& group) {
  Json json = {{"task", hash_hex(std::get<0>(key))},
               {"kernel", group.kernel_class},
               {"device", std::get<1>(key)},
               {"threads", std::get<2>(key)},
               {"trials", group.trials},
               {"ok", group.ok},
               {"at_sizes", group.at_sizes}};
  json["best_seconds"] = group.best.empty() ? Json() : Json(group.best.front().seconds);
  json["code"] = group.best.empty() ? Json() : code_json(group.best.front().code);
  return json;
}

Status show(const DbOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Summary summary, summarise(options));
  Json json = Json::array();
  const bool has_code = std::any_of(
      summary.groups.begin(), summary.groups.end(),
      [](const auto& entry) { return !entry.second.best.empty() && entry.second.best[0].code; });
  std::vector<std::string> header = {"kernel", "task", "device", "threads", "trials", "ok", "best"};
  const bool has_parts = std::any_of(summary.groups.begin(), summary.groups.end(),
                                     [](const auto& entry) { return entry.second.at_sizes > 0; });
  if (has_code) header.insert(header.end(), {"registers", "spilled"});
  if (has_parts) header.push_back("at sizes");
  Table table(header, 3);
  int64_t trials = 0;
  for (const GroupKey& key : summary.order) {
    const Group& group = summary.groups.at(key);
    trials += group.trials;
    json.push_back(to_json(key, group));
    std::vector<std::string> row = {group.kernel_class,
                                    hash_hex(std::get<0>(key)),
                                    shorten(std::get<1>(key), 40),
                                    std::to_string(std::get<2>(key)),
                                    std::to_string(group.trials),
                                    std::to_string(group.ok),
                                    format_seconds(group.best.empty() ? 0 : group.best[0].seconds)};
    if (has_code) {
      const bool known = !group.best.empty() && group.best[0].code;
      row.push_back(known ? std::to_string(group.best[0].code->registers) : "-");
      row.push_back(known ? std::to_string(group.best[0].code->spill_bytes) : "-");
    }
    if (has_parts) row.push_back(std::to_string(group.at_sizes));
    table.add(std::move(row));
  }
  if (options.json) {
    fmt::print("{}", json_text(json));
  } else {
    fmt::print("{}{} trials of {} kernels\n", table.text(), trials, summary.order.size());
  }
  return ok_status();
}

Status best(const DbOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Summary summary, summarise(options));
  Json json = Json::array();
  std::string text;
  for (const GroupKey& key : summary.order) {
    const Group& group = summary.groups.at(key);
    for (const TrialInfo& record : group.best) {
      Json entry = to_json(key, group);
      entry["seconds"] = record.seconds;
      entry["algorithm"] = record.algorithm;
      entry["accuracy"] = record.accuracy;
      entry["model"] = record.model;
      entry["version"] = record.version;
      entry["steps"] = record.steps;
      entry["code"] = code_json(record.code);
      const auto parts = group.parts.find(record.steps);
      entry["parts"] = parts != group.parts.end() ? Json(parts->second) : Json::object();
      json.push_back(std::move(entry));
      text += fmt::format("{} {} on {}, {} thread{}: {} ({})\n", printable(group.kernel_class),
                          hash_hex(std::get<0>(key)), printable(std::get<1>(key)), std::get<2>(key),
                          std::get<2>(key) == 1 ? "" : "s", format_seconds(record.seconds),
                          printable(record.algorithm));
      if (record.code) text += fmt::format("    # {}\n", describe(*record.code));
      for (const auto& [part, seconds] :
           parts != group.parts.end() ? parts->second : std::map<std::string, double>())
        text += fmt::format("    # {} for the part {}\n", format_seconds(seconds), printable(part));
      size_t begin = 0;
      while (begin < record.steps.size()) {
        const size_t end = std::min(record.steps.find('\n', begin), record.steps.size());
        text += fmt::format("    {}\n", record.steps.substr(begin, end - begin));
        begin = end + 1;
      }
    }
  }
  if (!options.json && text.empty()) text = "no verified trial\n";
  fmt::print("{}", options.json ? json_text(json) : text);
  return ok_status();
}

Command make_command(CLI::App& db, const std::string& name, const std::string& description,
                     Status (*action)(const DbOptions&),
                     const std::shared_ptr<DbOptions>& options) {
  CLI::App* app = db.add_subcommand(name, description);
  add_db(*app, options->db);
  add_record_filter(*app, options->filter);
  add_json(*app, options->json);
  return {app, [options, action] { return action(*options); },
          [options](FileRoles& files) {
            add_database_files("--db", options->db, DatabaseUse::kRead, files);
          }};
}

}  // namespace

Command db_show_command(CLI::App& db) {
  return make_command(
      db, "show", "Show a table of the kernels in the database with their trials and best times",
      show, std::make_shared<DbOptions>());
}
Command db_best_command(CLI::App& db) {
  const auto options = std::make_shared<DbOptions>();
  Command command = make_command(
      db, "best", "Show the best verified schedule of each kernel, step by step", best, options);
  command.app->add_option("--top", options->top, "Number of different schedules, fastest first")
      ->type_name("N")
      ->capture_default_str();
  return command;
}

}  // namespace hone::tool
