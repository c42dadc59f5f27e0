#include "hone/graph/ops/carried_values.h"

#include <algorithm>

#include "hone/graph/aggregates.h"
#include "hone/graph/extents.h"
#include "hone/graph/known_elements.h"
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
  find_fixed(slot);
  if (slot.extents != kNoValue && !slot.empty) {
    const ValueId carried = loop_.carry(slot.extents);
    loop_.body().set_extents(slot.inner, join_extents(loop_.body(), parts_of(slot, carried)));
  }
  slots_.push_back(slot);
  return slot.inner;
}

void CarriedValues::find_fixed(Slot& slot) const {
  const Shape& shape = c_.shape_of(slot.initial);
  const ValueId extents = c_.extents_of(slot.initial);
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool varies = d < slot.growth.varies.size() && slot.growth.varies[d];
    const auto known = extents == kNoValue ? std::optional(shape[d])
                                           : known_element(c_.graph(), c_.nodes(),
                                                           {extents, static_cast<int64_t>(d)});
    slot.fixed.push_back(varies ? std::nullopt : known);
  }
}

std::vector<ExtentPart> CarriedValues::parts_of(const Slot& slot, ValueId extents) {
  std::vector<ExtentPart> parts;
  for (const std::optional<int64_t>& number : slot.fixed)
    parts.push_back(number ? ExtentPart{kNoValue, *number}
                           : ExtentPart{extents, std::ssize(parts)});
  return parts;
}

std::optional<int64_t> CarriedValues::known_in_body(ValueId value, size_t d) const {
  const ExpandContext& body = loop_.body();
  const ValueId extents = body.extents_of(value);
  if (extents == kNoValue) return body.shape_of(value)[d];
  return known_element(body.graph(), body.nodes(), {extents, static_cast<int64_t>(d)});
}

bool CarriedValues::keeps_fixed(const Slot& slot, ValueId next) const {
  if (loop_.body().rank_of(next) != std::ssize(slot.fixed)) return false;
  for (size_t d = 0; d < slot.fixed.size(); ++d)
    if (slot.fixed[d] && known_in_body(next, d) != slot.fixed[d]) return false;
  return true;
}

std::optional<Growth> CarriedValues::change(const Slot& slot, ValueId next) const {
  const Shape &from = c_.shape_of(slot.initial), &to = loop_.body().shape_of(next);
  if (from.size() != to.size()) return std::nullopt;
  Growth change = slot.growth;
  const bool is_known = slot.grows();  // by how much it grows
  change.varies.resize(from.size());
  for (size_t d = 0; d < from.size(); ++d) {
    if (!is_known) change.step.push_back(std::max<int64_t>(to[d] - from[d], 0));
    if (!slot.fixed[d] || known_in_body(next, d) != slot.fixed[d]) change.varies[d] = true;
  }
  return change;
}

std::vector<Growth> CarriedValues::growth(const std::vector<ValueId>& next) const {
  std::vector<Growth> found(slots_.size());
  bool any = false;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    found[i] = slot.growth;
    const bool same_most = c_.shape_of(slot.initial) == loop_.body().shape_of(next[i]);
    if ((slot.grows() || same_most) && keeps_fixed(slot, next[i])) continue;
    std::optional<Growth> changed = change(slot, next[i]);
    if (!changed) return {};
    found[i] = *std::move(changed);
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
    if (slot.extents != kNoValue && !keeps_fixed(slot, values[i]))
      return c_.unsupported(
          "a loop that is not unrolled and whose carried value '{}' {} has a shape in the next turn "
          "of which data decide more than before",
          slot.name, to_string(c_.shape_of(slot.initial)));
    if (slot.extents == kNoValue) {
      const bool keeps = keeps_fixed(slot, values[i]);
      list.push_back(keeps ? without_extents(body, values[i]) : values[i]);
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
    if (slots_[i].extents != kNoValue) {
      const ValueId computed = results.carried[next++];
      value = with_extents(c_, value, join_extents(c_, parts_of(slots_[i], computed)));
    }
    c_.result(i, value);
  }
}

}  // namespace hone::graph
