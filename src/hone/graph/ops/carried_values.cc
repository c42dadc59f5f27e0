#include "hone/graph/ops/carried_values.h"

#include <algorithm>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/ops/taken_branch.h"

namespace hone::graph {

Result<ValueId> CarriedValues::add(ValueId initial, const std::string& name, const Growth& growth) {
  if (aggregate_of(initial) != nullptr)
    return c_.unsupported("a loop that is not unrolled and carries a sequence");
  Slot slot{.initial = initial, .extents = c_.extents_of(initial), .name = name, .growth = growth};
  const bool has_none = num_elements(c_.shape_of(initial)) == 0;
  if (slot.grows()) {
    slot.extents = actual_extents(c_, initial);
    const auto dtype = static_cast<int64_t>(c_.dtype_of(initial));
    slot.inner =
        has_none ? loop_.take(c_.add("hone.Blank", {}, {{"shape", growth.most}, {"dtype", dtype}}))
                 : loop_.carry(grown(c_, initial, growth.most));
  } else {
    slot.empty = has_none;
    slot.inner = has_none ? loop_.capture(initial) : loop_.carry(initial);
  }
  HONE_RETURN_IF_ERROR(c_.status());
  if (slot.extents != kNoValue && !slot.empty)
    loop_.body().set_extents(slot.inner, loop_.carry(slot.extents));
  slots_.push_back(slot);
  return slot.inner;
}

std::vector<Growth> CarriedValues::growth(const std::vector<ValueId>& next) const {
  std::vector<Growth> found(slots_.size());
  bool any = false;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    found[i] = slot.growth;
    const Shape &from = c_.shape_of(slot.initial), &to = loop_.body().shape_of(next[i]);
    const bool varies = slot.extents == kNoValue && loop_.body().extents_of(next[i]) != kNoValue;
    if (slot.grows() || (from == to && !varies)) continue;
    if (from.size() != to.size()) return {};
    for (size_t d = 0; d < from.size(); ++d) {
      if (to[d] < from[d]) return {};
      found[i].step.push_back(to[d] - from[d]);
    }
    any = true;
  }
  return any ? found : std::vector<Growth>();
}

Result<ValueId> CarriedValues::next_of_growing(const Slot& slot, ValueId value) {
  ExpandContext& body = loop_.body();
  const Shape& most = slot.growth.most;
  const Shape found = body.shape_of(value);
  bool more = found.size() != most.size() || body.dtype_of(value) != c_.dtype_of(slot.initial);
  for (size_t d = 0; !more && d < most.size(); ++d) more = found[d] > most[d] + slot.growth.step[d];
  if (more) {
    return c_.unsupported(
        "the carried value '{}' grows from {}, by {} elements in the first turn and by others in "
        "later ones, from {} to {}, so that its largest size is not known: expected as many in each "
        "turn, or a number of turns that is known (--bind)",
        slot.name, to_string(c_.shape_of(slot.initial)), to_string(slot.growth.step),
        to_string(most), to_string(found));
  }
  // No run has as many turns as would need the elements that are cut off.
  value = without_extents(body, value);
  for (size_t d = 0; d < most.size(); ++d) {
    if (found[d] > most[d]) value = body.slice(value, static_cast<int64_t>(d), 0, most[d]);
  }
  return grown(body, value, most);
}

Result<std::vector<ValueId>> CarriedValues::next(const std::vector<ValueId>& values) {
  ExpandContext& body = loop_.body();
  std::vector<ValueId> list;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.empty && body.shape_of(values[i]) != c_.shape_of(slot.initial))
      return c_.unsupported(
          "a loop that is not unrolled and whose carried value '{}' grows from {} to {}: expected "
          "one shape in all turns",
          slot.name, to_string(c_.shape_of(slot.initial)), to_string(body.shape_of(values[i])));
    if (slot.empty) continue;
    if (slot.extents == kNoValue) {
      list.push_back(values[i]);
      continue;
    }
    if (slot.grows()) {
      HONE_ASSIGN_OR_RETURN(const ValueId next, next_of_growing(slot, values[i]));
      list.push_back(next);
    } else {
      list.push_back(without_extents(body, values[i]));
    }
    list.push_back(actual_extents(body, values[i]));
  }
  return list;
}

void CarriedValues::declare(const LoopResults& results) {
  size_t next = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].empty) {
      c_.result(i, slots_[i].initial);
      continue;
    }
    ValueId value = results.carried[next++];
    if (slots_[i].extents != kNoValue) value = with_extents(c_, value, results.carried[next++]);
    c_.result(i, value);
  }
}

}  // namespace hone::graph
