#include "cost_data.h"

#include <fmt/ranges.h>

#include <map>

#include "hone/base/file.h"
#include "hone/base/log.h"
#include "hone/base/options.h"
#include "hone/db/copy.h"
#include "hone/db/registry.h"
#include "hone/trial/schedule_version.h"

#include "dataset_load.h"
#include "option_texts.h"

namespace hone::tool {
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
  Result<target::Target> target = target::find(name);
  if (target.ok()) return target;
  Result<target::Target> by_key = target::of_key(name);
  return by_key.ok() ? std::move(by_key) : std::move(target);
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
  const Result<target::Target> target = target::find(name);
  device.key = target.ok() ? target::device_key(*target) : name;
  return device;
}

Result<learn::Dataset> MeasuredStore::load(const MeasuredDevice& device) {
  if (store_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(auto store, db::open_store(db_, {.read_only = true, .create = false}));
    HONE_ASSIGN_OR_RETURN(contents_, learn::read_contents(*store));
    store_ = std::move(store);
  }
  HONE_ASSIGN_OR_RETURN(
      learn::Dataset dataset,
      learn::load_dataset(*store_, device.key, 2, kScheduleVersion, device.threads, &contents_));
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

Result<CostData> load_cost_data(MeasuredStore& store, const std::string& device) {
  CostData data;
  HONE_ASSIGN_OR_RETURN(data.device, parse_measured_device("--device", device));
  HONE_ASSIGN_OR_RETURN(data.target, measured_target(device));
  HONE_ASSIGN_OR_RETURN(data.dataset, store.load(data.device));
  if (data.dataset.tasks.empty()) return store.nothing_measured(data.device);
  return data;
}

Result<learn::SplitData> parts_of(const CostData& data, const std::string& split_file) {
  HONE_ASSIGN_OR_RETURN(const learn::DataSplit split, read_split(split_file));
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

Result<std::set<uint64_t>> read_task_keys(const std::string& file) {
  HONE_ASSIGN_OR_RETURN(const std::string text, read_file(file));
  HONE_ASSIGN_OR_RETURN(const learn::TaskList list, learn::parse_task_list(text, file));
  return list.keys();
}

void add_booster(CLI::App& app, std::string& name) {
  app.add_option("--booster", name,
                 fmt::format("The library that fits trees: {} (of the Python package lightgbm; "
                             "HONE_LIGHTGBM may name its file)",
                             fmt::join(cost::tree_library_names(), ", ")))
      ->type_name("NAME")
      ->capture_default_str();
}

Result<cost::BoostOptions> parse_booster(const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const cost::TreeLibrary library,
                        of_option("--booster", cost::parse_tree_library(name)));
  return cost::BoostOptions{.library = library};
}

}  // namespace hone::tool
