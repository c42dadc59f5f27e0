// learn/folds.h - divides a data set several times into training and test data.
#pragma once

#include "hone/learn/dataset.h"

namespace hone::learn {

// The way in which training and test data are chosen.
enum class Split : uint8_t {
  kNone,     // no training: the model is judged as it is
  kByModel,  // each network in turn is judged, after training without any of its tasks
  kByTask,   // a fifth of the tasks in turn is judged, after training on the others
  // A fifth of each task's schedules in turn is judged, after training on the others. Near
  // duplicates (learn/data_split.h) are in one fifth, also those that were measured with other
  // numbers of threads.
  kWithin,
};
[[nodiscard]] Result<Split> parse_split(std::string_view name);
[[nodiscard]] std::vector<std::string> split_names();

struct Fold {
  Dataset train, test;
  std::string network = {};  // kByModel: the network whose tasks `test` has
};
// Returns the folds; none for kNone.
[[nodiscard]] std::vector<Fold> make_folds(const Dataset& dataset, Split split);

}  // namespace hone::learn
