// tools/hone/cost_data.h - the measured schedules that `train` and `eval` work on.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "hone/cost/boosting.h"
#include "hone/cost/data_split.h"
#include "hone/target/target.h"

namespace hone::tool {

struct CostData {
  target::Target target;
  cost::Dataset dataset;
  std::optional<cost::Dataset> validation = {};  // where a split file says what to choose by
};
[[nodiscard]] Result<CostData> load_cost_data(const std::string& db, const std::string& device);

// What a file of `hone dataset split` makes of the data.
[[nodiscard]] Result<cost::SplitData> parts_of(const CostData& data, const std::string& split_file);

// --booster: the library that fits trees.
void add_booster(CLI::App& app, std::string& name);
[[nodiscard]] Result<cost::BoostOptions> parse_booster(const std::string& name);

}  // namespace hone::tool
