
#include <map>
#include <tuple>

#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/db/copy.h"
#include "hone/db/registry.h"

#include "command.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

struct DbOptions {
  std::string db;
  std::string task;     // 16 hexadecimal digits; empty: all
  std::string kernel;   // a kernel class; empty: all
  std::string threads;  // empty: any
  bool json = false;
};

// The trials of one task on one device with one number of threads.
struct Group {
  db::Record best;  // fastest verified one; id 0: none
  std::string kernel_class;
  int64_t trials = 0, ok = 0;
};
using GroupKey = std::tuple<uint64_t, std::string, int>;  // task, device, threads

struct Summary {
  std::vector<GroupKey> order;  // as first stored
  std::map<GroupKey, Group> groups;
};

Result<db::Filter> make_filter(const DbOptions& options) {
  db::Filter filter;
  if (!options.task.empty()) {
    const Result<uint64_t> key = parse_key(options.task);
    if (!key.ok()) return invalid("--task: {} as 'hone db show' prints it", key.status().message());
    filter.task = *key;
  }
  if (!options.kernel.empty()) filter.kernel_class = options.kernel;
  if (!options.threads.empty()) {
    HONE_ASSIGN_OR_RETURN(filter.threads, parse_count("--threads", options.threads, 1, 1024));
  }
  return filter;
}

Result<Summary> summarise(const DbOptions& options) {
  HONE_ASSIGN_OR_RETURN(const db::Filter filter, make_filter(options));
  HONE_ASSIGN_OR_RETURN(const auto store,
                        db::open_store(options.db, {.read_only = true, .create = false}));
  Summary summary;
  HONE_RETURN_IF_ERROR(db::for_each_record(*store, filter, [&](db::Record&& record) {
    const GroupKey key(record.task, record.device, record.threads);
    const auto [it, added] = summary.groups.try_emplace(key);
    if (added) summary.order.push_back(key);
    Group& group = it->second;
    group.kernel_class = record.kernel_class;
    ++group.trials;
    group.ok += record.outcome == measure::Outcome::kOk;
    if (record.verified && (group.best.id == 0 || record.centre < group.best.centre))
      group.best = std::move(record);
    return ok_status();
  }));
  return summary;
}

Json to_json(const GroupKey& key, const Group& group, bool with_schedule) {
  Json json = {{"task", hash_hex(std::get<0>(key))},
               {"kernel", group.kernel_class},
               {"device", std::get<1>(key)},
               {"threads", std::get<2>(key)},
               {"trials", group.trials},
               {"ok", group.ok}};
  json["best_seconds"] = group.best.id != 0 ? Json(group.best.centre) : Json();
  if (with_schedule) {
    json["algorithm"] = group.best.algorithm;
    json["steps"] = group.best.steps;
  }
  return json;
}

Status show(const DbOptions& options) {
  HONE_ASSIGN_OR_RETURN(const Summary summary, summarise(options));
  Json json = Json::array();
  Table table({"kernel", "task", "device", "threads", "trials", "ok", "best"}, 3);
  int64_t trials = 0;
  for (const GroupKey& key : summary.order) {
    const Group& group = summary.groups.at(key);
    trials += group.trials;
    json.push_back(to_json(key, group, false));
    table.add({group.kernel_class, hash_hex(std::get<0>(key)), shorten(std::get<1>(key), 40),
               std::to_string(std::get<2>(key)), std::to_string(group.trials),
               std::to_string(group.ok), format_seconds(group.best.centre)});
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
    if (group.best.id == 0) continue;
    json.push_back(to_json(key, group, true));
    text += fmt::format("{} {} on {}, {} thread{}: {} ({})\n", group.kernel_class,
                        hash_hex(std::get<0>(key)), std::get<1>(key), std::get<2>(key),
                        std::get<2>(key) == 1 ? "" : "s", format_seconds(group.best.centre),
                        group.best.algorithm);
    size_t begin = 0;
    while (begin < group.best.steps.size()) {
      const size_t end = std::min(group.best.steps.find('\n', begin), group.best.steps.size());
      text += fmt::format("    {}\n", group.best.steps.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  if (!options.json && text.empty()) text = "no verified trial\n";
  fmt::print("{}", options.json ? json_text(json) : text);
  return ok_status();
}

Command make_command(CLI::App& db, const std::string& name, const std::string& description,
                     Status (*action)(const DbOptions&)) {
  const auto options = std::make_shared<DbOptions>();
  CLI::App* app = db.add_subcommand(name, description);
  add_db(*app, options->db);
  app->add_option("--task", options->task, "Only the task with this key")->type_name("KEY");
  app->add_option("--kernel", options->kernel,
                  "Only kernels of this class, such as conv2d+bias+relu")
      ->type_name("CLASS");
  app->add_option("--threads", options->threads, "Only what ran on so many threads")
      ->type_name("N");
  add_json(*app, options->json);
  return {app, [options, action] { return action(*options); }};
}

}  // namespace

Command db_show_command(CLI::App& db) {
  return make_command(db, "show",
                      "A table of the kernels in the database: trials and best time of each", show);
}
Command db_best_command(CLI::App& db) {
  return make_command(db, "best", "The best verified schedule of each kernel, step by step", best);
}

}  // namespace hone::tool
