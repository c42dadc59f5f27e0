#include "hone/commands/training/dataset_arrays.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/commands/training/training_data.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/candidate_features.h"
#include "hone/db/record_arrays.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "hone dataset";
constexpr int kVersion = 2;  // 1: had no records, and said neither format nor version

// An array of rows; columns 0: one number each.
struct RowArray {
  const char* name;
  DType dtype;
  int64_t columns;
};

template <typename T>
constexpr DType kDtypeOf = DType::kF32;
template <>
constexpr DType kDtypeOf<double> = DType::kF64;
template <>
constexpr DType kDtypeOf<int32_t> = DType::kI32;
template <>
constexpr DType kDtypeOf<uint8_t> = DType::kU8;

template <typename T>
NamedTensor named(const char* name, int64_t columns, const std::vector<T>& values) {
  const int64_t width = std::max<int64_t>(columns, 1);
  Shape shape = {static_cast<int64_t>(values.size()) / width};
  if (columns > 0) shape.push_back(width);
  Tensor tensor(kDtypeOf<T>, shape);
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return {name, std::move(tensor)};
}

struct Rows {
  std::vector<float> statements, measure, bounds;
  std::vector<double> seconds;
  std::vector<int32_t> task, device, threads;
  std::vector<uint8_t> counted;  // whether the bounds are of hardware counters
  std::map<uint64_t, int32_t> tasks;

  // visit(name, columns, values); columns 0: one number each.
  template <typename Visitor>
  void for_each_array(const Visitor& visit) const {
    const auto width = [](cost::FeatureSet set) {
      return std::ssize(cost::candidate_feature_names(set));
    };
    visit("statements", width(cost::FeatureSet::kStatements), statements);
    visit("measure", width(cost::FeatureSet::kCombined), measure);
    visit("bounds", 2, bounds);
    visit("bounds_counted", 0, counted);
    visit("seconds", 0, seconds);
    visit("task", 0, task);
    visit("device", 0, device);
    visit("threads", 0, threads);
  }

  Json meta = {{"format", kFormat},
               {"version", kVersion},
               {"tasks", Json::array()},
               {"devices", Json::array()}};

  [[nodiscard]] Status add(const learn::Dataset& dataset, const target::Target& target) {
    const auto device_index = static_cast<int32_t>(meta["devices"].size());
    meta["devices"].push_back(dataset.device);
    for (const learn::TaskTrials& one : dataset.tasks) {
      const auto [place, added] = tasks.emplace(one.key, static_cast<int32_t>(tasks.size()));
      if (added) {
        meta["tasks"].push_back(
            {{"task", hash_hex(one.key)}, {"kernel", one.kernel_class}, {"models", one.models}});
      }
      for (const learn::MeasuredSteps& trial : one.trials) {
        HONE_ASSIGN_OR_RETURN(const space::Candidate candidate,
                              space::make_candidate(*one.dag, trial.steps));
        const cost::Query query = {&candidate, &target, one.threads, one.key};
        const auto append = [&](std::vector<float>& to, cost::FeatureSet set) {
          const std::vector<float> row = cost::candidate_features(query, set).row;
          to.insert(to.end(), row.begin(), row.end());
        };
        append(statements, cost::FeatureSet::kStatements);
        append(measure, cost::FeatureSet::kCombined);
        const trial::BoundScores scores = cost::bound_scores(query, trial.counted);
        counted.push_back(trial.counted.has_value());
        bounds.push_back(static_cast<float>(scores.memory));
        bounds.push_back(static_cast<float>(scores.core));
        seconds.push_back(trial.seconds);
        task.push_back(place->second);
        device.push_back(device_index);
        threads.push_back(one.threads);
      }
    }
    return ok_status();
  }
};

// The object in `meta`, if it is one of this format and these versions.
Result<Json> read_meta(std::span<const NamedTensor> arrays) {
  HONE_ASSIGN_OR_RETURN(const Tensor bytes, find_array(arrays, "meta", DType::kU8, {-1}));
  const auto text = bytes.as<uint8_t>();
  Json meta = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!meta.is_object()) return invalid("array 'meta': expected the bytes of a JSON object");
  if (!meta.contains("format") && meta.contains("space_version"))
    return invalid(
        "array 'meta': no version is said, so it is of an older Hone and has no records, expected "
        "version {}",
        kVersion);
  const auto expect = [&meta](const char* name, const Json& expected) -> Status {
    const Json found = meta.value(name, Json());
    if (found == expected) return ok_status();
    return invalid("array 'meta': {} is {}, expected {}", name,
                   found.dump(-1, ' ', false, Json::error_handler_t::replace), expected.dump());
  };
  HONE_RETURN_IF_ERROR(expect("format", kFormat));
  HONE_RETURN_IF_ERROR(expect("version", kVersion));
  HONE_RETURN_IF_ERROR(expect("space_version", kScheduleVersion));
  HONE_RETURN_IF_ERROR(expect("feature_version", cost::kCandidateFeatureVersion));
  for (const char* list : {"tasks", "devices"}) {
    if (!meta.value(list, Json()).is_array()) return invalid("array 'meta': {} is no list", list);
  }
  return meta;
}

// The first value that `is_good` refuses is an error; `expected` says what it allows.
template <typename T, typename IsGood>
Status check_values(const RowArray& array, const Tensor& tensor, const char* expected,
                    IsGood is_good) {
  const auto values = tensor.as<T>();
  const auto bad = std::find_if_not(values.begin(), values.end(), is_good);
  if (bad == values.end()) return ok_status();
  const int64_t row = (bad - values.begin()) / std::max<int64_t>(array.columns, 1);
  return invalid("array '{}', row {}: found {}, expected {}", array.name, row, *bad, expected);
}

Status check_values(const RowArray& array, const Tensor& tensor, const Json& meta) {
  const std::string name = array.name;
  switch (array.dtype) {
    case DType::kF32:
      return check_values<float>(array, tensor, "a finite number",
                                 [](float value) { return std::isfinite(value); });
    case DType::kF64:
      return check_values<double>(array, tensor, "a positive time",
                                  [](double value) { return value > 0 && std::isfinite(value); });
    case DType::kU8:
      return check_values<uint8_t>(array, tensor, "0 or 1",
                                   [](uint8_t value) { return value < 2; });
    default: break;
  }
  if (name == "threads")
    return check_values<int32_t>(array, tensor, "a number of threads",
                                 [](int32_t value) { return value > 0; });
  const auto count = std::ssize(meta.at(name + "s"));
  return check_values<int32_t>(array, tensor, "an index into the list in 'meta'",
                               [&](int32_t value) { return value >= 0 && value < count; });
}

// Whether the rows of features and times are whole.
Status check_rows(std::span<const NamedTensor> arrays, const Json& meta) {
  HONE_ASSIGN_OR_RETURN(const Tensor seconds, find_array(arrays, "seconds", DType::kF64, {-1}));
  std::set<std::string> known = {"meta"};
  std::vector<RowArray> expected;
  Rows().for_each_array([&]<typename T>(const char* name, int64_t columns, const std::vector<T>&) {
    expected.push_back({name, kDtypeOf<T>, columns});
  });
  for (const RowArray& array : expected) {
    Shape shape = {seconds.size()};
    if (array.columns > 0) shape.push_back(array.columns);
    HONE_ASSIGN_OR_RETURN(const Tensor tensor, find_array(arrays, array.name, array.dtype, shape));
    HONE_RETURN_IF_ERROR(check_values(array, tensor, meta));
    known.insert(array.name);
  }
  for (const NamedTensor& array : arrays) {
    if (!known.contains(array.name) && !array.name.starts_with(db::kRecordArray))
      return invalid("array '{}' is unknown", array.name);
  }
  return ok_status();
}

}  // namespace

Result<std::vector<NamedTensor>> dataset_arrays(std::span<const learn::Dataset> datasets,
                                                std::span<const trial::Record> records) {
  Rows rows;
  for (const learn::Dataset& dataset : datasets) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, target::of_key(dataset.device));
    if (target.kind() == target::Kind::kGpu) {
      log_warning("device {} has no rows of features here, which are of CPUs; its records are kept",
                  dataset.device);
      continue;
    }
    HONE_RETURN_IF_ERROR(rows.add(dataset, target));
  }
  rows.meta["space_version"] = kScheduleVersion;
  rows.meta["feature_version"] = cost::kCandidateFeatureVersion;
  rows.meta["bounds_source"] = cost::bounds_source(
      std::count(rows.counted.begin(), rows.counted.end(), 1), std::ssize(rows.counted));
  rows.meta["statements"] = cost::candidate_feature_names(cost::FeatureSet::kStatements);
  rows.meta["measure"] = cost::candidate_feature_names(cost::FeatureSet::kCombined);
  const std::string text = rows.meta.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";

  std::vector<NamedTensor> arrays;
  rows.for_each_array([&](const char* name, int64_t columns, const auto& values) {
    arrays.push_back(named(name, columns, values));
  });
  arrays.push_back(named("meta", 0, std::vector<uint8_t>(text.begin(), text.end())));
  std::vector<NamedTensor> more = db::to_arrays(records);
  std::move(more.begin(), more.end(), std::back_inserter(arrays));
  return arrays;
}

Result<std::vector<trial::Record>> dataset_records(std::span<const NamedTensor> arrays) {
  HONE_ASSIGN_OR_RETURN(const Json meta, read_meta(arrays));
  HONE_RETURN_IF_ERROR(check_rows(arrays, meta));
  return db::from_arrays(arrays);
}

}  // namespace hone
