#include "dataset_load.h"

#include <fmt/ranges.h>

#include <set>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/db/copy.h"
#include "hone/db/registry.h"
#include "hone/model_tasks.h"

namespace hone::tool {

Result<std::vector<cost::Dataset>> load_all_devices(const std::string& db) {
  HONE_ASSIGN_OR_RETURN(const auto store, db::open_store(db, {.read_only = true, .create = false}));
  std::set<std::string> devices, versions;
  int64_t records = 0;
  HONE_RETURN_IF_ERROR(db::for_each_record(*store, {}, [&](db::Record&& record) {
    devices.insert(record.device);
    versions.insert(record.version);
    ++records;
    return ok_status();
  }));
  std::vector<cost::Dataset> datasets;
  for (const std::string& device : devices) {
    HONE_ASSIGN_OR_RETURN(cost::Dataset dataset,
                          cost::load_dataset(*store, device, 2, kScheduleVersion));
    if (!dataset.tasks.empty()) datasets.push_back(std::move(dataset));
  }
  if (datasets.empty()) {
    return invalid("{}: no task with two measured schedules of space version {}; it has {}",
                   db::store_name(db), kScheduleVersion,
                   versions.empty() ? "no records"
                                    : fmt::format("{} records of version {}", records,
                                                  fmt::join(versions, ", ")));
  }
  return datasets;
}

void warn_of_what_is_left_out(const cost::Dataset& dataset) {
  const auto warn = [](int64_t count, std::string_view of_what, std::string_view why) {
    if (count > 0) log_warning("{} {} are left out: {}", count, of_what, why);
  };
  for (const auto& [version, records] : dataset.other_versions) {
    warn(records, "records",
         fmt::format("they are of space version '{}', expected '{}'", version, kScheduleVersion));
  }
  warn(dataset.bad_times, "records", "their time is no positive number");
  warn(dataset.outliers, "records",
       fmt::format("their times are more than {} times off the median of their schedule",
                   cost::kOutlierRatio));
  warn(dataset.left_out, "schedules", "this version can make nothing of them");
  warn(dataset.small_tasks, "tasks", "a single schedule of them was measured");
}

Result<cost::DataSplit> read_split(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return cost::parse_data_split(text, path, kScheduleVersion);
}

}  // namespace hone::tool
