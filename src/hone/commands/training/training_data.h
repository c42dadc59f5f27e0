// commands/training/training_data.h - the measured schedules of a database, of this version of
// schedules, that cost models are trained on and judged by. What is left out is warned of.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hone/cost/gbdt_model.h"
#include "hone/learn/data_split.h"
#include "hone/target/target.h"

namespace hone {

// A device as callers name what was measured: a name of device_names(), or a key as
// DatasetStatistics has it, and then /THREADS or nothing: "host", "host/2".
struct MeasuredDevice {
  std::string key;  // target::device_key
  int threads = 0;  // 0: any number
  [[nodiscard]] std::string text() const;
  // Returns whether a measurement may be of both.
  [[nodiscard]] bool overlaps(const MeasuredDevice& other) const;
};
// Parses the text of an option. What is no name is taken for a key.
[[nodiscard]] Result<MeasuredDevice> parse_measured_device(std::string_view option,
                                                           std::string_view text);
// Returns the target that such a text names.
[[nodiscard]] Result<target::Target> measured_target(std::string_view text);
// Returns an error for a device of another kind than `what`, a model or file, is about.
[[nodiscard]] Status check_kind(const target::Target& target, target::Kind expected,
                                std::string_view what);

struct MeasuredData {
  target::Target target;
  MeasuredDevice device;
  learn::Dataset dataset;
  std::optional<learn::Dataset> validation = {};  // set if a split file says what to choose by
};
// A database that is read for one device after another. What all its records say together is read
// once, with the first device.
class MeasuredStore {
 public:
  explicit MeasuredStore(std::string db) : db_(std::move(db)) {}
  // Loads what was measured on a device. It is an error if all of it is of other versions.
  [[nodiscard]] Result<learn::Dataset> load(const MeasuredDevice& device);
  // Does the same for a device that is named by a text. It is an error if there is nothing, which
  // says what there is instead.
  [[nodiscard]] Result<MeasuredData> load(const std::string& device);
  // Loads a dataset for each device that has usable records. It is an error if there is none.
  [[nodiscard]] Result<std::vector<learn::Dataset>> load_all_devices();
  // Opens the database to read it, once.
  [[nodiscard]] Result<db::TrialStore*> open();

 private:
  [[nodiscard]] Status nothing_measured(const MeasuredDevice& device) const;
  std::string db_;
  std::unique_ptr<db::TrialStore> store_;  // null: nothing was loaded yet
  learn::StoreContents contents_;
};

// Returns what the split in a file makes of the data.
[[nodiscard]] Result<learn::SplitData> parts_of(const MeasuredData& data,
                                                const std::string& split_file);
// Returns an error if an option names a network that is not among those that are known of
// `devices`.
[[nodiscard]] Status check_networks(std::string_view option, const std::vector<std::string>& names,
                                    const std::set<std::string>& known, std::string_view devices);
// Returns the features of trees by the name of their kind: "gbdt", "combined" or "gpu".
[[nodiscard]] Result<cost::FeatureSet> tree_features(const std::string& kind);
// Returns a library that fits trees by its name; empty: the usual one.
[[nodiscard]] Result<cost::TreeLibrary> parse_booster(const std::string& name);
// Warns "1 record is left out: WHY", if there is any.
void warn_left_out(int64_t count, std::string_view what, std::string_view why);
// Warns in a line for each reason.
void warn_of_what_is_left_out(const learn::Dataset& dataset);

}  // namespace hone
