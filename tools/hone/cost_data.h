// tools/hone/cost_data.h - the measured schedules that `train`, `eval` and `dataset` work on.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hone/cost/boosting.h"
#include "hone/learn/data_split.h"
#include "hone/learn/task_list.h"
#include "hone/target/target.h"

namespace hone::tool {

// A device as options name what was measured: NAME of `hone devices`, or KEY as `dataset stat`
// prints it, and then /THREADS or nothing: "host", "host/2".
struct MeasuredDevice {
  std::string key;  // target::device_key
  int threads = 0;  // 0: any number
  [[nodiscard]] std::string text() const;
  // Whether a time may be of both.
  [[nodiscard]] bool overlaps(const MeasuredDevice& other) const;
};
// What is no NAME is taken for a KEY.
[[nodiscard]] Result<MeasuredDevice> parse_measured_device(std::string_view option,
                                                           std::string_view text);

// What a MeasuredDevice is, by its name or its key.
[[nodiscard]] Result<target::Target> measured_target(std::string_view text);

struct CostData {
  target::Target target;
  MeasuredDevice device;
  learn::Dataset dataset;
  std::optional<learn::Dataset> validation = {};  // where a split file says what to choose by
};
// A database that is read for one device after another: what all its records say together is read
// once, with the first one.
class MeasuredStore {
 public:
  explicit MeasuredStore(std::string db) : db_(std::move(db)) {}
  // What was measured there; an error if it is all of other space versions. Warns of what is left
  // out.
  [[nodiscard]] Result<learn::Dataset> load(const MeasuredDevice& device);
  // An error that says what there is instead; after a load().
  [[nodiscard]] Status nothing_measured(const MeasuredDevice& device) const;

 private:
  std::string db_;
  std::unique_ptr<db::TrialStore> store_;  // null: nothing was loaded yet
  learn::StoreContents contents_;
};
// An error, too, if nothing is left.
[[nodiscard]] Result<CostData> load_cost_data(MeasuredStore& store, const std::string& device);

// What a file of `hone dataset split` makes of the data.
[[nodiscard]] Result<learn::SplitData> parts_of(const CostData& data,
                                                const std::string& split_file);

// --booster: the library that fits trees.
void add_booster(CLI::App& app, std::string& name);
[[nodiscard]] Result<cost::BoostOptions> parse_booster(const std::string& name);
// An error if an option names a network that is not among those that are known of `devices`.
[[nodiscard]] Status check_networks(std::string_view option, const std::vector<std::string>& names,
                                    const std::set<std::string>& known, std::string_view devices);

// The keys in a file of `hone dataset representatives`.
[[nodiscard]] Result<std::set<uint64_t>> read_task_keys(const std::string& file);

}  // namespace hone::tool
