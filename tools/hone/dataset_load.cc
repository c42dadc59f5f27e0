#include "dataset_load.h"

#include <fmt/ranges.h>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/db/registry.h"
#include "hone/trial/schedule_version.h"

namespace hone::tool {

Result<std::vector<learn::Dataset>> load_all_devices(const std::string& db) {
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(db, {.read_only = true, .create = false}));
  HONE_ASSIGN_OR_RETURN(const learn::StoreContents contents, learn::read_contents(*store));
  std::vector<learn::Dataset> datasets, unusable;
  for (const std::string& device : contents.devices) {
    HONE_ASSIGN_OR_RETURN(learn::Dataset dataset,
                          learn::load_dataset(*store, device, 2, kScheduleVersion, 0, &contents));
    if (!dataset.tasks.empty())
      datasets.push_back(std::move(dataset));
    else
      unusable.push_back(std::move(dataset));
  }
  if (datasets.empty()) {
    return invalid("{}: no task with two measured schedules of space version {}; it has {}",
                   db::store_name(db), kScheduleVersion,
                   contents.records == 0 ? "no records"
                                         : fmt::format("{} records of version {}", contents.records,
                                                       fmt::join(contents.versions, ", ")));
  }
  for (const learn::Dataset& dataset : unusable) {
    log_warning("device {} is left out: no task with two measured schedules of space version {}",
                dataset.device, kScheduleVersion);
    warn_of_what_is_left_out(dataset);
  }
  return datasets;
}

void warn_left_out(int64_t count, std::string_view what, std::string_view why) {
  if (count > 0)
    log_warning("{} {}{} left out: {}", count, what, count == 1 ? " is" : "s are", why);
}

void warn_of_what_is_left_out(const learn::Dataset& dataset) {
  for (const auto& [version, records] : dataset.other_versions) {
    warn_left_out(records, "record",
                  fmt::format("of space version '{}', expected '{}'", version, kScheduleVersion));
  }
  warn_left_out(dataset.bad_times, "record", "no positive time");
  warn_left_out(dataset.outliers, "record",
                fmt::format("more than {} times off the median of the schedule's times",
                            learn::kOutlierRatio));
  warn_left_out(dataset.left_out, "schedule", "this version can make nothing of it");
  warn_left_out(dataset.small_tasks, "task", "measured with a single schedule");
}

Result<learn::DataSplit> read_split(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return learn::parse_data_split(text, path, kScheduleVersion);
}

}  // namespace hone::tool
