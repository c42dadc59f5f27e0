// commands/training/model_card.h - notes in the file of a trained cost model about how it was made.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "hone/commands/training/training_data.h"
#include "hone/cost/boosting.h"

namespace hone {

using Notes = std::map<std::string, std::string>;  // by name

// The data that a model was trained on, without the parts that it was judged by or that were not
// drawn.
struct TrainedOn {
  std::vector<std::string> devices;
  std::set<std::string> models;
  std::set<uint64_t> tasks;
  int64_t schedules = 0;
  void add(const MeasuredDevice& device, const learn::Dataset& part);
};
// Returns notes about devices, networks, and the networks that were left out.
[[nodiscard]] Notes data_notes(const TrainedOn& data, const std::vector<std::string>& excluded);
// Returns the same for trees, and how many schedules and tasks there were.
[[nodiscard]] Notes tree_notes(const TrainedOn& data, const std::vector<std::string>& excluded,
                               cost::TreeLibrary booster, uint64_t seed);
// Parses trees that a training starts from, with a card that says so. `path` is that of their file.
[[nodiscard]] Result<cost::TrainedTrees> start_trees(std::string_view text,
                                                     const std::string& path);
// Returns notes about the file that a training started from: its name and hash, and everything that
// its own card says, after "from.".
[[nodiscard]] Notes from_notes(const std::string& path, std::string_view bytes, const Notes& card);

}  // namespace hone
