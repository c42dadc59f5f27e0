// tools/hone/model_card.h - what the file of a trained cost model says of how it was made.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/cost/boosting.h"

#include "cost_data.h"
#include "json_text.h"

namespace hone::tool {

using Notes = std::map<std::string, std::string>;  // by name

// Of what anything is trained on: devices, networks, and those that were left out.
[[nodiscard]] Notes data_notes(const std::vector<CostData>& data,
                               const std::vector<std::string>& excluded);
// The same for trees, and how many schedules and tasks there were.
[[nodiscard]] Notes tree_notes(const std::vector<CostData>& data,
                               const std::vector<std::string>& excluded, cost::TreeLibrary booster,
                               const std::string& seed);
// What went on from a file: its name and hash, and what its own card said.
[[nodiscard]] Notes from_notes(const std::string& path, std::string_view bytes, const Notes& card);

// The card of a model as --cost names it; null if it has none.
[[nodiscard]] Result<Json> read_card(const std::string& cost);
// "trained: booster xgboost; devices ...", a line; "" of null.
[[nodiscard]] std::string card_line(const Json& card);

}  // namespace hone::tool
