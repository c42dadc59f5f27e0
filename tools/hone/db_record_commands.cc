#include <ctime>
#include <map>
#include <set>

#include "hone/base/printable.h"
#include "hone/database.h"

#include "command.h"
#include "command_files.h"
#include "json_text.h"
#include "option_texts.h"
#include "record_filter.h"
#include "table.h"

namespace hone::tool {
namespace {

constexpr size_t kProblemsShown = 20;
using Access = Database::Access;

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

std::string date(int64_t unix_time) {
  const auto time = static_cast<std::time_t>(unix_time);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Status stat(const Options& options) {
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(options.db));
  std::set<uint64_t> tasks;
  std::set<std::string> classes;
  std::map<std::string, int64_t> devices, models, versions, outcomes, accuracies;
  int64_t trials = 0, verified = 0, parts = 0, first = 0, last = 0;
  HONE_RETURN_IF_ERROR(database.for_each({.parts = true}, [&](TrialInfo&& record) {
    tasks.insert(record.task);
    classes.insert(record.kernel_class);
    ++devices[record.device], ++models[record.model], ++versions[record.version];
    ++outcomes[record.outcome];
    ++accuracies[record.accuracy];
    verified += record.verified;
    parts += record.part.empty() ? 0 : 1;
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
                       {"last_time", last},        {"parts", parts}};
    fmt::print("{}", json_text(json));
    return ok_status();
  }
  fmt::print("{} trials, {} of them verified, of {} tasks in {} kernel classes\n", trials, verified,
             tasks.size(), classes.size());
  if (parts > 0) fmt::print("{} trials are of smaller sizes of kernels whose shapes vary\n", parts);
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
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(options.db, Access::kAdd));
  HONE_ASSIGN_OR_RETURN(const CopiedTrials copied, database.read_lines(options.file));
  fmt::print("{} trials added, {} were there before\n", copied.added, copied.known);
  return ok_status();
}

Status export_lines(const Options& options) {
  HONE_ASSIGN_OR_RETURN(const TrialFilter filter, parse_record_filter(options.filter));
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(options.db));
  HONE_ASSIGN_OR_RETURN(const int64_t lines, database.write_lines(options.file, filter));
  if (options.file != "-") fmt::print("wrote {}: {} trials\n", options.file, lines);
  return ok_status();
}

Status merge(const Options& options) {
  std::vector<Database> others;  // all of them exist before anything is changed
  for (const std::string& other : options.others) {
    HONE_ASSIGN_OR_RETURN(Database opened, Database::open(other));
    others.push_back(std::move(opened));
  }
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(options.db, Access::kAdd));
  for (size_t i = 0; i < others.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const CopiedTrials copied, database.merge(others[i]));
    fmt::print("{}: {} trials added, {} were there before\n", database_name(options.others[i]),
               copied.added, copied.known);
  }
  return ok_status();
}

Status verify(const Options& options) {
  HONE_ASSIGN_OR_RETURN(Database database, Database::open(options.db));
  HONE_ASSIGN_OR_RETURN(const DatabaseProblems found, database.verify());
  const std::vector<std::string>& problems = found.problems;
  for (size_t i = 0; i < std::min(problems.size(), kProblemsShown); ++i)
    fmt::print("{}\n", printable(problems[i]));
  if (problems.empty()) {
    fmt::print("{} trials, nothing wrong\n", found.trials);
    return ok_status();
  }
  return error(Code::kIo, "the database has {} problem{} in {} trials", problems.size(),
               problems.size() == 1 ? "" : "s", found.trials);
}

Status gc(const Options& options) {
  constexpr int kMany = 1'000'000'000;
  HONE_ASSIGN_OR_RETURN(const int keep, parse_count("--keep", options.keep, 1, kMany));
  HONE_ASSIGN_OR_RETURN(const int days, parse_count("--older-than", options.older_than, 0, 100000));
  HONE_ASSIGN_OR_RETURN(
      Database database,
      Database::open(options.db, options.dry_run ? Access::kRead : Access::kUpdate));
  HONE_ASSIGN_OR_RETURN(
      const TidyResult tidied,
      database.tidy({.keep = keep, .older_than_days = days, .dry_run = options.dry_run}));
  fmt::print("{} of {} trials {}\n", tidied.removed, tidied.trials,
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
        ->check([](const std::string& other) { return check_database(other).message(); })
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
