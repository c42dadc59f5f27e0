// graph/ops/carried_values.h - the values that the body of a loop carries from turn to turn.
#pragma once

#include <optional>

#include "hone/graph/extents.h"
#include "hone/graph/ops/loop_builder.h"

namespace hone::graph {

// A value that has more elements after each turn, or fewer, or another number that data decide: at
// most `step` more in each dimension, and `most` after the last turn. Another value has neither.
struct Growth {
  Shape step, most;
  std::vector<bool> varies;  // by dimension: turns may have different extents
};

// A value whose shape depends on data, or changes, is carried with its extents in its largest
// shape, and one without elements that does not change is a constant. An extent that is a number
// before the loop, and that each turn keeps, is that number in the body and behind the loop.
class CarriedValues {
 public:
  CarriedValues(ExpandContext& c, LoopBuilder& loop) : c_(c), loop_(loop) {}

  // Returns the value in the body, where the file has this name for it.
  Result<ValueId> add(ValueId initial, const std::string& name, const Growth& growth = {});
  // Returns how each of them changes if it is this in the next turn; empty if none does of which
  // that was not known, or one of them cannot be carried even so.
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
    std::vector<std::optional<int64_t>> fixed;  // by dimension, the extent of all turns, if known
    [[nodiscard]] bool grows() const { return !growth.most.empty(); }
  };
  // Finds which extents stay as they are before the loop, as far as that is known.
  void find_fixed(Slot& slot) const;
  // Returns extents of which those that are fixed are numbers.
  [[nodiscard]] static std::vector<ExtentPart> parts_of(const Slot& slot, ValueId extents);
  // Returns the extent of a value in the body, if it is known.
  [[nodiscard]] std::optional<int64_t> known_in_body(ValueId value, size_t d) const;
  // Returns whether a value has the fixed extents.
  [[nodiscard]] bool keeps_fixed(const Slot& slot, ValueId next) const;
  // Returns how a value changes that is this in the next turn; nullopt if it has another rank.
  [[nodiscard]] std::optional<Growth> change(const Slot& slot, ValueId next) const;
  Result<ValueId> next_of_growing(const Slot& slot, ValueId value);

  ExpandContext& c_;
  LoopBuilder& loop_;
  std::vector<Slot> slots_;
};

}  // namespace hone::graph
