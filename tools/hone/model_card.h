// tools/hone/model_card.h - what the file of a trained cost model says of how it was made.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "hone/cost/boosting.h"

#include "cost_data.h"
#include "json_text.h"

namespace hone::tool {

using Notes = std::map<std::string, std::string>;  // by name

// What a model was trained on: neither what it was judged by nor what was not drawn.
struct TrainedOn {
  std::vector<std::string> devices;
  std::set<std::string> models;
  std::set<uint64_t> tasks;
  int64_t schedules = 0;
  void add(const MeasuredDevice& device, const learn::Dataset& part);
};
// Devices, networks, and those that were left out.
[[nodiscard]] Notes data_notes(const TrainedOn& data, const std::vector<std::string>& excluded);
// The same for trees, and how many schedules and tasks there were.
[[nodiscard]] Notes tree_notes(const TrainedOn& data, const std::vector<std::string>& excluded,
                               cost::TreeLibrary booster, uint64_t seed);
// What went on from a file: its name and hash, and all that its own card said, after "from.".
[[nodiscard]] Notes from_notes(const std::string& path, std::string_view bytes, const Notes& card);

// Without what is empty; null of nothing.
[[nodiscard]] Json card_json(const Notes& card);
// "trained: booster xgboost; devices ...", a line; "" of null.
[[nodiscard]] std::string card_line(const Json& card);

}  // namespace hone::tool
