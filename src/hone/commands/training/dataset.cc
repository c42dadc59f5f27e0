#include "hone/dataset.h"

#include <algorithm>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/commands/record_check.h"
#include "hone/commands/training/dataset_arrays.h"
#include "hone/commands/training/training_data.h"
#include "hone/db/copy.h"
#include "hone/db/json_lines.h"
#include "hone/db/line_check.h"
#include "hone/db/registry.h"
#include "hone/db/store_to_add.h"
#include "hone/learn/representatives.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

Status check_version(const std::string& path, const trial::Record& record) {
  if (record.version == kScheduleVersion) return ok_status();
  return invalid("{}: task {} was measured with space version '{}', expected {}", path,
                 hash_hex(record.task), record.version, kScheduleVersion);
}

Result<CopiedTrials> import_npz(const std::string& path, const std::string& db) {
  HONE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> arrays, read_npz(path));
  Result<std::vector<trial::Record>> records = dataset_records(arrays);
  if (!records.ok())
    return error(records.status().code(), "'{}': {}", path, records.status().message());
  RecordCheck check;
  for (const trial::Record& record : *records) {
    HONE_RETURN_IF_ERROR(check_version(path, record));
    if (const Status claims = check.claims_of(record); !claims.ok())
      return invalid("'{}': {}", path, claims.message());
  }
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store_to_add(db));
  return db::add_records(std::move(records).value(), *store);
}

Result<CopiedTrials> import_lines(const std::string& path, const std::string& db) {
  // Everything is looked at before anything is added.
  HONE_RETURN_IF_ERROR(db::for_each_json_line(
      path, [&](trial::Record&& record) { return check_version(path, record); }));
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store_to_add(db));
  RecordCheck check;
  return db::import_json_lines(
      path, *store, [&check](const trial::Record& record) { return check.claims_of(record); });
}

Result<ExportedDataset> export_npz(const std::string& db, const std::string& path) {
  MeasuredStore store(db);
  HONE_ASSIGN_OR_RETURN(const std::vector<learn::Dataset> datasets, store.load_all_devices());
  HONE_ASSIGN_OR_RETURN(db::TrialStore* const trials, store.open());
  std::vector<trial::Record> records;
  int64_t left_out = 0;
  HONE_RETURN_IF_ERROR(
      db::for_each_record(*trials, {.with_task_text = true}, [&](trial::Record&& record) {
        if (record.version == kScheduleVersion)
          records.push_back(std::move(record));
        else
          ++left_out;
        return ok_status();
      }));
  HONE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> arrays, dataset_arrays(datasets, records));
  HONE_RETURN_IF_ERROR(write_npz(path, arrays, true));
  warn_left_out(left_out, "record", fmt::format("not of space version {}", kScheduleVersion));
  std::set<uint64_t> tasks;
  ExportedDataset exported{.records = std::ssize(records)};
  for (const learn::Dataset& dataset : datasets) {
    tasks.merge(dataset.keys());
    exported.schedules += dataset.size();
  }
  exported.tasks = std::ssize(tasks);
  return exported;
}

}  // namespace

Result<SplitSizes> split_dataset(const std::string& db, const std::string& path,
                                 const SplitOptions& options) {
  MeasuredStore store(db);
  HONE_ASSIGN_OR_RETURN(const std::vector<learn::Dataset> datasets, store.load_all_devices());
  for (const learn::Dataset& dataset : datasets) warn_of_what_is_left_out(dataset);
  HONE_ASSIGN_OR_RETURN(const learn::DataSplit made,
                        learn::make_split(datasets, options, kScheduleVersion));
  HONE_RETURN_IF_ERROR(write_file_atomic(path, learn::format(made)));
  SplitSizes sizes;
  for (const learn::Dataset& dataset : datasets) {
    const learn::SplitData data = learn::apply_split(dataset, made);
    sizes.train += data.train.size(), sizes.validation += data.validation.size();
    sizes.test += data.test.size();
  }
  return sizes;
}

Result<ExportedDataset> export_dataset(const std::string& db, const std::string& path) {
  if (path.ends_with(".npz")) return export_npz(db, path);
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(db, {.read_only = true, .create = false}));
  HONE_ASSIGN_OR_RETURN(const int64_t lines, db::export_json_lines(*store, {}, path));
  return ExportedDataset{.records = lines};
}

Result<CopiedTrials> import_dataset(const std::string& path, const std::string& db) {
  return path.ends_with(".npz") ? import_npz(path, db) : import_lines(path, db);
}

Result<TaskList> choose_representatives(const std::string& db,
                                        const RepresentativeOptions& options) {
  MeasuredStore store(db);
  HONE_ASSIGN_OR_RETURN(const MeasuredData data, store.load(options.device));
  HONE_RETURN_IF_ERROR(check_networks("--exclude-model", options.exclude_models,
                                      data.dataset.models(), data.device.text()));
  const learn::Dataset rest = learn::without_models(
      data.dataset, {options.exclude_models.begin(), options.exclude_models.end()});
  if (rest.tasks.empty()) {
    return invalid("{}: no task with two measured schedules on device {} to choose from",
                   db::store_name(db), data.device.text());
  }
  return TaskList{data.device.text(), options.exclude_models,
                  learn::representatives(rest, options.count)};
}

}  // namespace hone
