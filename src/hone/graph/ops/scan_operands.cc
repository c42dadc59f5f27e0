#include "hone/graph/ops/scan_operands.h"

#include <algorithm>

#include "hone/graph/extents.h"
#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/common_shape.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// Returns whether all runs have the largest extent of a dimension.
bool is_known(ExpandContext& c, ValueId value, int64_t axis) {
  const ExtentPart part = part_of(c, value, static_cast<size_t>(axis));
  return part.extents == kNoValue && part.dim == c.shape_of(value)[static_cast<size_t>(axis)];
}

// Returns the number of steps if data decide it, else kNoValue. A run fails in which operands have
// different numbers of them.
Result<ValueId> steps_of_run(ExpandContext& c, const ScanOperands& operands) {
  ExtentsCheck check{.dims = {true},
                     .text = fmt::format("{}: its scanned operands have different numbers of steps "
                                         "in this run",
                                         name_and_type(c.node()))};
  std::vector<ElementOf> decided;
  for (const auto& [value, axis, direction] : operands.scanned) {
    if (!is_known(c, value, axis)) decided.push_back({c.extents_of(value), axis});
    check.extents.push_back(dimension(c, actual_extents(c, value), axis));
  }
  if (decided.empty()) return kNoValue;
  const bool all_same = decided.size() == operands.scanned.size() &&
                        std::all_of(decided.begin(), decided.end(), [&](const ElementOf& count) {
                          return are_same_element(c.graph(), c.nodes(), decided[0], count);
                        });
  ValueId count = check.extents[0];
  if (!all_same) {
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, check_extents(c, check, {}));
    count = made[0];
  }
  return c.binary("Min", count, static_cast<double>(operands.turns));
}

}  // namespace

Result<int64_t> scan_entry(const ExpandContext& c, const char* name, size_t i) {
  const std::vector<int64_t> list = c.attributes().integers(name);
  if (!list.empty() && i >= list.size())
    return c.fail("attribute '{}' has {} entries", name, list.size());
  return list.empty() ? 0 : list[i];
}

Result<ScanOperands> scan_operands(ExpandContext& c, const SubgraphBody& body) {
  const int64_t scanned = c.attributes().integer("num_scan_inputs", 0);
  const auto inputs = static_cast<int64_t>(body.inputs.size());
  const int64_t states = inputs - scanned;
  if (scanned < 1 || states < 0 || std::ssize(body.outputs) < states)
    return c.fail("{} scanned operands, and a body with {} inputs and {} results", scanned, inputs,
                  body.outputs.size());
  if (c.num_outputs() > body.outputs.size())
    return c.fail("{} results, expected {} at most, as its body has so many", c.num_outputs(),
                  body.outputs.size());
  ScanOperands operands;
  int64_t steps = -1;  // of those whose number of steps is known
  for (int64_t i = 0; i < inputs; ++i) {
    if (!c.has(static_cast<size_t>(i))) return c.fail("operand {} is missing", i);
    const ValueId value = c.input(static_cast<size_t>(i));
    if (i < states) {
      operands.states.push_back(value);
      continue;
    }
    const auto k = static_cast<size_t>(i - states);
    HONE_ASSIGN_OR_RETURN(const int64_t given, scan_entry(c, "scan_input_axes", k));
    HONE_ASSIGN_OR_RETURN(const int64_t direction, scan_entry(c, "scan_input_directions", k));
    const auto axis = normalize_axis(given, c.rank_of(value));
    if (!axis) return c.fail("scan_input_axes has {}", given);
    const int64_t length = c.shape_of(value)[static_cast<size_t>(*axis)];
    if (is_known(c, value, *axis)) {
      if (steps >= 0 && steps != length)
        return c.fail("scanned operands of {} and {} steps", steps, length);
      steps = length;
    }
    operands.turns = operands.turns < 0 ? length : std::min(operands.turns, length);
    operands.scanned.push_back({value, *axis, direction});
  }
  HONE_ASSIGN_OR_RETURN(operands.count, steps_of_run(c, operands));
  return operands;
}

}  // namespace hone::graph
