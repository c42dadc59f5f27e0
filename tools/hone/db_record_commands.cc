#include <ctime>
#include <map>
#include <set>
#include <tuple>

#include "hone/base/printable.h"
#include "hone/db/copy.h"
#include "hone/db/line_check.h"
#include "hone/db/registry.h"
#include "hone/db/store_address.h"
#include "hone/schedule/step.h"

#include "command.h"
#include "command_files.h"
#include "json_text.h"
#include "option_texts.h"
#include "record_check.h"
#include "record_filter.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr size_t kProblemsShown = 20;
constexpr int kSecondsADay = 24 * 3600;

struct Options {
  std::string db;
  std::string file;                 // import, export
  RecordFilterTexts filter;         // export
  std::vector<std::string> others;  // merge
  std::string keep = "100";         // gc
  std::string older_than = "0";     // gc: days
  bool dry_run = false;
  bool json = false;
};

Result<std::unique_ptr<db::Store>> open_to_read(const std::string& db) {
  return db::open_store(db, {.read_only = true, .create = false});
}

std::string date(int64_t unix_time) {
  const auto time = static_cast<std::time_t>(unix_time);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Status stat(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const auto store, open_to_read(options.db));
  std::set<uint64_t> tasks;
  std::set<std::string> classes;
  std::map<std::string, int64_t> devices, models, versions, outcomes, accuracies;
  int64_t trials = 0, verified = 0, first = 0, last = 0;
  HONE_RETURN_IF_ERROR(db::for_each_record(*store, {}, [&](trial::Record&& record) {
    tasks.insert(record.task);
    classes.insert(record.kernel_class);
    ++devices[record.device], ++models[record.model], ++versions[record.version];
    ++outcomes[std::string(trial::outcome_name(record.outcome))];
    ++accuracies[std::string(trial::accuracy_name(record.accuracy))];
    verified += record.verified;
    first = trials == 0 ? record.unix_time : std::min(first, record.unix_time);
    last = std::max(last, record.unix_time);
    ++trials;
    return ok_status();
  }));
  if (options.json) {
    const Json json = {{"trials", trials},         {"verified", verified},
                       {"tasks", tasks.size()},    {"kernel_classes", classes.size()},
                       {"outcomes", outcomes},     {"devices", devices},
                       {"models", models},         {"versions", versions},
                       {"accuracies", accuracies}, {"first_time", first},
                       {"last_time", last}};
    fmt::print("{}", json_text(json));
    return ok_status();
  }
  fmt::print("{} trials, {} of them verified, of {} tasks in {} kernel classes\n", trials, verified,
             tasks.size(), classes.size());
  if (trials > 0) fmt::print("measured from {} to {}\n", date(first), date(last));
  Table table({"", "", "trials"}, 2);
  const auto add = [&table](const char* what, const std::map<std::string, int64_t>& counts) {
    for (const auto& [name, count] : counts)
      table.add({what, name.empty() ? "-" : name, std::to_string(count)});
  };
  add("outcome", outcomes);
  add("device", devices);
  add("model", models);
  add("version", versions);
  add("accuracy", accuracies);
  if (trials > 0) fmt::print("{}", table.text());
  return ok_status();
}

Status import_lines(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(options.db));
  RecordCheck check;
  const auto check_line = [&check](const trial::Record& record) { return check.claims_of(record); };
  HONE_ASSIGN_OR_RETURN(const db::Copied copied,
                        db::import_json_lines(options.file, *store, check_line));
  fmt::print("{} trials added, {} were there before\n", copied.added, copied.known);
  return ok_status();
}

Status export_lines(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const db::Filter filter, parse_record_filter(options.filter));
  HONE_ASSIGN_OR_RETURN(const auto store, open_to_read(options.db));
  HONE_ASSIGN_OR_RETURN(const int64_t lines, db::export_json_lines(*store, filter, options.file));
  if (options.file != "-") fmt::print("wrote {}: {} trials\n", options.file, lines);
  return ok_status();
}

Status merge(const Options& options) {
  std::vector<std::unique_ptr<db::Store>> others;  // all of them exist before anything is changed
  for (const std::string& other : options.others) {
    HONE_ASSIGN_OR_RETURN(auto store, open_to_read(other));
    others.push_back(std::move(store));
  }
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(options.db));
  for (size_t i = 0; i < others.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const db::Copied copied, db::copy_records(*others[i], *store));
    fmt::print("{}: {} trials added, {} were there before\n", db::store_name(options.others[i]),
               copied.added, copied.known);
  }
  return ok_status();
}

Status verify(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const auto store, open_to_read(options.db));
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> problems, store->verify());
  int64_t trials = 0;
  RecordCheck check;
  const Status read =
      db::for_each_record(*store, {.with_task_text = true}, [&](trial::Record&& record) {
        ++trials;
        for (std::string& problem : check.problems_of(record))
          problems.push_back(std::move(problem));
        return ok_status();
      });
  if (!read.ok()) problems.push_back(read.message());
  for (size_t i = 0; i < std::min(problems.size(), kProblemsShown); ++i)
    fmt::print("{}\n", printable(problems[i]));
  if (problems.empty()) {
    fmt::print("{} trials, nothing wrong\n", trials);
    return ok_status();
  }
  return error(Code::kIo, "the database has {} problem{} in {} trials", problems.size(),
               problems.size() == 1 ? "" : "s", trials);
}

Status gc(const Options& options) {
  constexpr int kMany = 1'000'000'000;
  HONE_ASSIGN_OR_RETURN(const int keep, parse_count("--keep", options.keep, 1, kMany));
  HONE_ASSIGN_OR_RETURN(const int days, parse_count("--older-than", options.older_than, 0, 100000));
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(options.db, {.read_only = options.dry_run,
                                                                      .create = false}));
  const int64_t newest = static_cast<int64_t>(std::time(nullptr)) - int64_t{days} * kSecondsADay;
  // The fastest verified trials of each task, device, number of threads, version and algorithm
  // stay: not every --accuracy allows every algorithm.
  std::map<std::tuple<uint64_t, std::string, int, std::string, std::string>,
           std::vector<std::pair<double, int64_t>>>
      verified;
  // What says that a schedule must not be used on a device stays, too: one wrong answer is enough,
  // of other failures it takes two.
  constexpr int kFailures = 2;
  std::map<std::tuple<uint64_t, std::string, std::string>, int> failed;
  std::set<int64_t> removed;
  int64_t trials = 0;
  HONE_RETURN_IF_ERROR(db::for_each_record(*store, {}, [&](trial::Record&& record) {
    ++trials;
    const bool fails = record.outcome != trial::Outcome::kOk &&
                       record.outcome != trial::Outcome::kCompile &&
                       failed[{record.task, record.device, record.steps}]++ < kFailures;
    if (record.unix_time <= newest && !fails) removed.insert(record.id);
    if (record.verified)
      verified[{record.task, record.device, record.threads, record.version, record.algorithm}]
          .emplace_back(record.centre, record.id);
    return ok_status();
  }));
  for (auto& [key, group] : verified) {
    std::sort(group.begin(), group.end());
    for (size_t i = 0; i < std::min(group.size(), static_cast<size_t>(keep)); ++i)
      removed.erase(group[i].second);
  }
  if (!options.dry_run && !removed.empty())
    HONE_RETURN_IF_ERROR(store->remove(std::vector<int64_t>(removed.begin(), removed.end())));
  fmt::print("{} of {} trials {}\n", removed.size(), trials,
             options.dry_run ? "would be removed" : "removed");
  return ok_status();
}

}  // namespace

std::vector<Command> db_record_commands(CLI::App& db) {
  std::vector<Command> commands;
  const auto make = [&](const char* name, const char* description,
                        Status (*action)(const Options&)) -> std::pair<CLI::App*, Options*> {
    const auto options = std::make_shared<Options>();
    CLI::App* app = db.add_subcommand(name, description);
    const bool writes = action == import_lines || action == merge || action == gc;
    const bool exports = action == export_lines;
    commands.push_back({app, [options, action] { return action(*options); },
                        [options, writes, exports](FileRoles& files) {
                          add_database_files("--db", options->db,
                                             writes ? DatabaseUse::kWrite : DatabaseUse::kRead,
                                             files);
                          for (const std::string& other : options->others)
                            add_database_files("DB", other, DatabaseUse::kRead, files);
                          if (options->file.empty() || options->file == "-") return;
                          if (exports)
                            files.written("FILE", options->file);
                          else
                            files.read("FILE", options->file);
                        }});
    return {app, options.get()};
  };
  {
    const auto [app, options] = make(
        "stat", "Count the records in the database by device, model, version and outcome", stat);
    add_db(*app, options->db);
    add_json(*app, options->json);
  }
  {
    const auto [app, options] =
        make("import", "Add the trials of a file of JSON lines, each once", import_lines);
    app->add_option("file", options->file, "A file that export wrote")
        ->required()
        ->type_name("FILE");
    add_db(*app, options->db);
  }
  {
    const auto [app, options] =
        make("export", "Write all or selected trials as JSON lines", export_lines);
    app->add_option("file", options->file, "The file to write; -: standard output")
        ->required()
        ->type_name("FILE");
    add_record_filter(*app, options->filter);
    add_db(*app, options->db);
  }
  {
    const auto [app, options] =
        make("merge", "Add the trials of other databases, each once", merge);
    app->add_option("other", options->others, "Databases to read, named as for --db")
        ->required()
        ->check([](const std::string& other) { return db::check_address(other).message(); })
        ->type_name("DB");
    add_db(*app, options->db);
  }
  {
    const auto [app, options] = make(
        "verify", "Check every page, task and trial; exit code 2 if something is wrong", verify);
    add_db(*app, options->db);
  }
  {
    const auto [app, options] = make(
        "gc",
        "Remove old trials except the fastest and those of schedules that fail, and free their "
        "space",
        gc);
    app->add_option(
           "--keep", options->keep,
           "Number of verified trials to keep per task, device, number of threads, version and "
           "algorithm")
        ->type_name("N")
        ->capture_default_str();
    app->add_option("--older-than", options->older_than,
                    "Remove only trials that are at least this many days old")
        ->type_name("DAYS")
        ->capture_default_str();
    app->add_flag("--dry-run", options->dry_run, "Print what would be removed, but remove nothing");
    add_db(*app, options->db);
  }
  return commands;
}

}  // namespace hone::tool
