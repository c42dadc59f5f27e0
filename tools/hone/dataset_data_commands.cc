// hone dataset split, import, export: what was measured as training data.
#include <set>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/base/options.h"
#include "hone/commands/record_check.h"
#include "hone/db/copy.h"
#include "hone/db/json_lines.h"
#include "hone/db/line_check.h"
#include "hone/db/registry.h"
#include "hone/learn/data_split.h"
#include "hone/tensor/npy.h"
#include "hone/trial/schedule_version.h"

#include "command.h"
#include "command_files.h"
#include "dataset_arrays.h"
#include "dataset_load.h"
#include "option_texts.h"
#include "unused_options.h"

namespace hone::tool {
namespace {

struct SplitTexts {
  std::string db, output, by = "task", fraction = "0.1", validation = "0.1", seed = "1";
  std::vector<std::string> held_out;
};

Status split(const SplitTexts& texts, const CLI::App& app) {
  learn::SplitOptions options;
  HONE_ASSIGN_OR_RETURN(options.by, learn::parse_split_by(texts.by));
  if (options.by == learn::SplitBy::kModel || options.by == learn::SplitBy::kDevice) {
    HONE_RETURN_IF_ERROR(
        check_unused(app, {"--fraction"}, "--by within and --by task",
                     fmt::format("--by {} tests by all that --hold-out names", texts.by)));
  }
  HONE_ASSIGN_OR_RETURN(options.fraction,
                        of_option("--fraction", parse_real(texts.fraction, 0, 1)));
  HONE_ASSIGN_OR_RETURN(options.validation,
                        of_option("--validation", parse_real(texts.validation, 0, 1)));
  HONE_ASSIGN_OR_RETURN(options.seed, parse_seed(texts.seed));
  options.held_out = texts.held_out;
  HONE_ASSIGN_OR_RETURN(const std::vector<learn::Dataset> datasets, load_all_devices(texts.db));
  for (const learn::Dataset& dataset : datasets) warn_of_what_is_left_out(dataset);
  HONE_ASSIGN_OR_RETURN(const learn::DataSplit made,
                        learn::make_split(datasets, options, kScheduleVersion));
  HONE_RETURN_IF_ERROR(write_file_atomic(texts.output, learn::format(made)));
  int64_t train = 0, validation = 0, test = 0;
  for (const learn::Dataset& dataset : datasets) {
    const learn::SplitData data = learn::apply_split(dataset, made);
    train += data.train.size(), validation += data.validation.size(), test += data.test.size();
  }
  fmt::print("wrote {}: {} schedules to train on, {} to validate, {} to test by\n", texts.output,
             train, validation, test);
  return ok_status();
}

struct FileTexts {
  std::string db, file;
};

Status check_version(const std::string& file, const trial::Record& record) {
  if (record.version == kScheduleVersion) return ok_status();
  return invalid("{}: task {} was measured with space version '{}', expected {}", file,
                 hash_hex(record.task), record.version, kScheduleVersion);
}

Result<db::Copied> import_npz(const FileTexts& texts) {
  HONE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> arrays, read_npz(texts.file));
  Result<std::vector<trial::Record>> records = dataset_records(arrays);
  if (!records.ok())
    return error(records.status().code(), "'{}': {}", texts.file, records.status().message());
  RecordCheck check;
  for (const trial::Record& record : *records) {
    HONE_RETURN_IF_ERROR(check_version(texts.file, record));
    if (const Status claims = check.claims_of(record); !claims.ok())
      return invalid("'{}': {}", texts.file, claims.message());
  }
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(texts.db));
  return db::add_records(std::move(records).value(), *store);
}

Result<db::Copied> import_lines(const FileTexts& texts) {
  // Everything is looked at before anything is added.
  HONE_RETURN_IF_ERROR(db::for_each_json_line(
      texts.file, [&](trial::Record&& record) { return check_version(texts.file, record); }));
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(texts.db));
  RecordCheck check;
  return db::import_json_lines(texts.file, *store, [&check](const trial::Record& record) {
    return check.claims_of(record);
  });
}

Status import_data(const FileTexts& texts) {
  HONE_ASSIGN_OR_RETURN(const db::Copied copied,
                        texts.file.ends_with(".npz") ? import_npz(texts) : import_lines(texts));
  fmt::print("{} records added, {} were there before\n", copied.added, copied.known);
  return ok_status();
}

Status export_npz(const FileTexts& texts) {
  HONE_ASSIGN_OR_RETURN(const std::vector<learn::Dataset> datasets, load_all_devices(texts.db));
  HONE_ASSIGN_OR_RETURN(const auto store,
                        db::open_store(texts.db, {.read_only = true, .create = false}));
  db::Filter all;
  all.with_task_text = true;
  std::vector<trial::Record> records;
  int64_t left_out = 0;
  HONE_RETURN_IF_ERROR(db::for_each_record(*store, all, [&](trial::Record&& record) {
    if (record.version == kScheduleVersion)
      records.push_back(std::move(record));
    else
      ++left_out;
    return ok_status();
  }));
  HONE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> arrays, dataset_arrays(datasets, records));
  HONE_RETURN_IF_ERROR(write_npz(texts.file, arrays, true));
  warn_left_out(left_out, "record", fmt::format("not of space version {}", kScheduleVersion));
  std::set<uint64_t> tasks;
  int64_t schedules = 0;
  for (const learn::Dataset& dataset : datasets) {
    tasks.merge(dataset.keys());
    schedules += dataset.size();
  }
  fmt::print("wrote {}: {} schedules of {} tasks, {} records\n", texts.file, schedules,
             tasks.size(), records.size());
  return ok_status();
}

Status export_data(const FileTexts& texts) {
  if (texts.file.ends_with(".npz")) return export_npz(texts);
  HONE_ASSIGN_OR_RETURN(const auto store,
                        db::open_store(texts.db, {.read_only = true, .create = false}));
  HONE_ASSIGN_OR_RETURN(const int64_t lines, db::export_json_lines(*store, {}, texts.file));
  if (texts.file != "-") fmt::print("wrote {}: {} records\n", texts.file, lines);
  return ok_status();
}

Command file_command(CLI::App& dataset, const char* name, const char* description, const char* file,
                     Status (*action)(const FileTexts&)) {
  const auto texts = std::make_shared<FileTexts>();
  CLI::App* app = dataset.add_subcommand(name, description);
  app->add_option("file", texts->file, file)->required()->type_name("FILE");
  add_db(*app, texts->db);
  const bool imports = action == import_data;
  return {app, [texts, action] { return action(*texts); },
          [texts, imports](FileRoles& files) {
            add_database_files("--db", texts->db,
                               imports ? DatabaseUse::kWrite : DatabaseUse::kRead, files);
            if (imports)
              files.read("FILE", texts->file);
            else if (texts->file != "-")
              files.written("FILE", texts->file);
          }};
}

}  // namespace

Command dataset_split_command(CLI::App& dataset) {
  const auto texts = std::make_shared<SplitTexts>();
  CLI::App* app = dataset.add_subcommand(
      "split", "Divide a data set into parts for training, validation and testing");
  add_db(*app, texts->db);
  app->add_option("-o,--output", texts->output, "The split to write, for --split-file")
      ->type_name("FILE")
      ->required();
  app->add_option(
         "--by", texts->by,
         "What is divided: within: the schedules of each task, with near duplicates together; "
         "task: tasks; model: the tasks of networks; device: devices")
      ->type_name("WHAT")
      ->capture_default_str();
  app->add_option("--hold-out", texts->held_out,
                  "The test part: networks, or devices as KEY or KEY/THREADS; repeat for more")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  app->add_option("--fraction", texts->fraction,
                  "Share of schedules or tasks for testing, with --by within or task")
      ->type_name("SHARE")
      ->capture_default_str();
  app->add_option("--validation", texts->validation, "Share of the others for validation")
      ->type_name("SHARE")
      ->capture_default_str();
  add_seed(*app, texts->seed);
  return {app, [texts, app] { return split(*texts, *app); },
          [texts](FileRoles& files) {
            add_database_files("--db", texts->db, DatabaseUse::kRead, files);
            files.written("--output", texts->output);
          }};
}

Command dataset_import_command(CLI::App& dataset) {
  return file_command(dataset, "import", "Add the records of a file that export wrote, each once",
                      "A file that export wrote: an .npz or JSON lines, by its name", import_data);
}

Command dataset_export_command(CLI::App& dataset) {
  return file_command(
      dataset, "export",
      "Write all records as JSON lines, or for NumPy (.npz) with features and times",
      "The file to write, by its name an .npz or JSON lines; -: standard output", export_data);
}

}  // namespace hone::tool
