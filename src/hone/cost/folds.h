// cost/folds.h - a data set divided several times into what a model is trained on and what it is
// judged by.
#pragma once

#include "hone/cost/dataset.h"

namespace hone::cost {

// What a model is trained on, and what it is judged by.
enum class Split : uint8_t {
  kNone,     // nothing: it is judged as it is
  kByModel,  // each network in turn is judged, after training without any of its tasks
  kByTask,   // a fifth of the tasks in turn, after training on the others
  // A fifth of each task's schedules in turn, after training on the others. Near duplicates
  // (cost/data_split.h) are in one fifth, with whatever number of threads they were measured.
  kWithin,
};
[[nodiscard]] Result<Split> parse_split(std::string_view name);
[[nodiscard]] std::vector<std::string> split_names();

struct Fold {
  Dataset train, test;
  std::string network = {};  // kByModel: all of whose tasks `test` has
};
// None for kNone.
[[nodiscard]] std::vector<Fold> make_folds(const Dataset& dataset, Split split);

}  // namespace hone::cost
