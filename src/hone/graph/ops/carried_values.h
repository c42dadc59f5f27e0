// graph/ops/carried_values.h - the values that the body of a loop carries from turn to turn.
#pragma once

#include "hone/graph/ops/loop_builder.h"

namespace hone::graph {

// A value that has more elements after each turn, or another number that data decides: at most
// `step` more in each dimension, and `most` after the last turn. Another value has neither.
struct Growth {
  Shape step, most;
};

// A value whose shape depends on data, or grows, is carried with its extents in its largest shape,
// and one without elements that does not grow is a constant.
class CarriedValues {
 public:
  CarriedValues(ExpandContext& c, LoopBuilder& loop) : c_(c), loop_(loop) {}

  // Returns the value in the body, where the file has this name for it.
  Result<ValueId> add(ValueId initial, const std::string& name, const Growth& growth = {});
  // Returns by how much each of them grows if it is this in the next turn; empty if none does of
  // which that was not known, or one of them cannot be carried even so.
  [[nodiscard]] std::vector<Growth> growth(const std::vector<ValueId>& next) const;
  // Takes what the values are in the next turn, and returns these as the builder wants them.
  Result<std::vector<ValueId>> next(const std::vector<ValueId>& values);
  // Declares the results of the node, from those of the loop.
  void declare(const LoopResults& results);

 private:
  struct Slot {
    ValueId initial, extents, inner = kNoValue;
    std::string name;
    Growth growth;
    bool empty = false;
    [[nodiscard]] bool grows() const { return !growth.most.empty(); }
  };
  Result<ValueId> next_of_growing(const Slot& slot, ValueId value);

  ExpandContext& c_;
  LoopBuilder& loop_;
  std::vector<Slot> slots_;
};

}  // namespace hone::graph
