#include "hone/commands/training/training_data.h"

#include <fmt/ranges.h>

#include <map>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/base/options.h"
#include "hone/cost/net/family.h"
#include "hone/db/copy.h"
#include "hone/db/registry.h"
#include "hone/machine/local.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

constexpr int kMostThreads = 1024;

std::pair<std::string, std::string> split_device(std::string_view text) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

}  // namespace

Result<target::Target> measured_target(std::string_view text) {
  const std::string name = split_device(text).first;
  const Result<target::Target> named = machine::local().find(name);
  Result<target::Target> by_key = named.ok() ? named : target::of_key(name);
  if (!by_key.ok()) return named;
  return by_key;
}

Status check_kind(const target::Target& target, target::Kind expected, std::string_view what) {
  if (target.kind() == expected) return ok_status();
  const bool gpu = target.kind() == target::Kind::kGpu;
  return error(Code::kUnsupported, "device {} is a {}, expected a {}: {} knows no others",
               target.name, gpu ? "GPU" : "CPU", gpu ? "CPU" : "GPU", what);
}

std::string MeasuredDevice::text() const {
  return threads == 0 ? key : fmt::format("{}/{}", key, threads);
}

bool MeasuredDevice::overlaps(const MeasuredDevice& other) const {
  return key == other.key && (threads == 0 || other.threads == 0 || threads == other.threads);
}

Result<MeasuredDevice> parse_measured_device(std::string_view option, std::string_view text) {
  const auto [name, threads] = split_device(text);
  MeasuredDevice device;
  if (text.find('/') != std::string_view::npos) {
    const Result<int64_t> number = parse_int(threads, 1, kMostThreads);
    if (!number.ok())
      return invalid("{}: '{}': after / the threads: {}", option, text, number.status().message());
    device.threads = static_cast<int>(*number);
  }
  const Result<target::Target> target = machine::local().find(name);
  device.key = target.ok() ? target::device_key(*target) : name;
  return device;
}

Result<db::TrialStore*> MeasuredStore::open() {
  if (store_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(auto store, db::open_store(db_, {.read_only = true, .create = false}));
    HONE_ASSIGN_OR_RETURN(contents_, learn::read_contents(*store));
    store_ = std::move(store);
  }
  return store_.get();
}

Result<learn::Dataset> MeasuredStore::load(const MeasuredDevice& device) {
  HONE_ASSIGN_OR_RETURN(db::TrialStore* const store, open());
  HONE_ASSIGN_OR_RETURN(
      learn::Dataset dataset,
      learn::load_dataset(*store, device.key, 2, kScheduleVersion, device.threads, &contents_));
  const bool none = dataset.tasks.empty() && dataset.small_tasks == 0 && dataset.bad_times == 0;
  if (none && !dataset.other_versions.empty()) {
    return invalid("{}: its records on device {} are of space version {}, expected {}",
                   db::store_name(db_), device.text(), dataset.other_versions.begin()->first,
                   kScheduleVersion);
  }
  if (!dataset.tasks.empty()) warn_of_what_is_left_out(dataset);
  return dataset;
}

Status MeasuredStore::nothing_measured(const MeasuredDevice& device) const {
  std::map<std::string, int64_t> found;
  HONE_RETURN_IF_ERROR(db::for_each_record(*store_, {}, [&](const trial::Record& record) {
    ++found[fmt::format("{}/{} ({})", record.device, record.threads,
                        trial::outcome_name(record.outcome))];
    return ok_status();
  }));
  std::vector<std::string> texts;
  for (const auto& [what, records] : found) texts.push_back(fmt::format("{} of {}", records, what));
  return invalid("{}: no task with two measured schedules on device {}; its records: {}",
                 db::store_name(db_), device.text(),
                 texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")));
}

Result<MeasuredData> MeasuredStore::load(const std::string& device) {
  MeasuredData data;
  HONE_ASSIGN_OR_RETURN(data.device, parse_measured_device("--device", device));
  HONE_ASSIGN_OR_RETURN(data.target, measured_target(device));
  HONE_ASSIGN_OR_RETURN(data.dataset, load(data.device));
  if (data.dataset.tasks.empty()) return nothing_measured(data.device);
  return data;
}

Result<std::vector<learn::Dataset>> MeasuredStore::load_all_devices() {
  HONE_ASSIGN_OR_RETURN(db::TrialStore* const store, open());
  std::vector<learn::Dataset> datasets, unusable;
  for (const std::string& device : contents_.devices) {
    HONE_ASSIGN_OR_RETURN(learn::Dataset dataset,
                          learn::load_dataset(*store, device, 2, kScheduleVersion, 0, &contents_));
    (dataset.tasks.empty() ? unusable : datasets).push_back(std::move(dataset));
  }
  if (datasets.empty()) {
    return invalid("{}: no task with two measured schedules of space version {}; it has {}",
                   db::store_name(db_), kScheduleVersion,
                   contents_.records == 0
                       ? "no records"
                       : fmt::format("{} records of version {}", contents_.records,
                                     fmt::join(contents_.versions, ", ")));
  }
  for (const learn::Dataset& dataset : unusable) {
    log_warning("device {} is left out: no task with two measured schedules of space version {}",
                dataset.device, kScheduleVersion);
    warn_of_what_is_left_out(dataset);
  }
  return datasets;
}

Result<learn::SplitData> parts_of(const MeasuredData& data, const std::string& split_file) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(split_file));
  HONE_ASSIGN_OR_RETURN(const learn::DataSplit split,
                        learn::parse_data_split(text, split_file, kScheduleVersion));
  learn::SplitData parts = learn::apply_split(data.dataset, split);
  if (parts.train.tasks.empty() && parts.validation.tasks.empty() && parts.test.tasks.empty())
    return invalid(
        "{}: a split of other data: no schedule of its tasks was measured on device {} before it "
        "was made",
        split_file, data.device.text());
  if (parts.unknown > 0) {
    warn_left_out(parts.unknown, "schedule", fmt::format("measured after {} was made", split_file));
  }
  return parts;
}

Status check_networks(std::string_view option, const std::vector<std::string>& names,
                      const std::set<std::string>& known, std::string_view devices) {
  for (const std::string& name : names) {
    if (!known.contains(name))
      return invalid("{}: no task of '{}' on {}, but of {}", option, name, devices,
                     fmt::join(known, ", "));
  }
  return ok_status();
}

Result<cost::FeatureSet> tree_features(const std::string& kind) {
  for (const auto set : cost::kTreeFeatures) {
    if (kind == cost::model_name(set)) return set;
  }
  return invalid("--cost: '{}' cannot be trained, expected gbdt, combined, gpu, static, {}", kind,
                 fmt::join(cost::net::family_names(), ", "));
}

Result<cost::TreeLibrary> parse_booster(const std::string& name) {
  if (name.empty()) return cost::BoostOptions().library;
  return of_option("--booster", cost::parse_tree_library(name));
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

}  // namespace hone
