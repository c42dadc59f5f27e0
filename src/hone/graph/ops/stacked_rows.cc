#include "hone/graph/ops/stacked_rows.h"

#include <algorithm>
#include <iterator>

#include "hone/graph/known_elements.h"
#include "hone/graph/node_names.h"
#include "hone/graph/ops/common_shape.h"

namespace hone::graph {
namespace {

std::string text_of_fault(const ExpandContext& c) {
  return fmt::format("{} stacks rows of different shapes in this run", name_and_type(c.node()));
}

}  // namespace

Shape shape_of_no_row(const ExpandContext& c, const SubgraphBody& body, size_t output,
                      ValueId row) {
  Shape shape = c.shape_of(row);
  if (c.extents_of(row) == kNoValue) return shape;
  const auto declared = body.declared.find(body.outputs[output]);
  const bool is_known = declared != body.declared.end() && declared->second.size() == shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto number =
        known_element(c.graph(), c.nodes(), {c.extents_of(row), static_cast<int64_t>(d)});
    const int64_t wanted = is_known ? std::max<int64_t>(declared->second[d], 0) : 0;
    shape[d] = number ? *number : std::min(wanted, shape[d]);
  }
  return shape;
}

Result<StackedRows> stack_rows(ExpandContext& c, const std::vector<ValueId>& rows,
                               const std::vector<ValueId>& is_there, size_t axis) {
  for (const ValueId row : rows)
    if (c.dtype_of(row) != c.dtype_of(rows[0]) || c.rank_of(row) != c.rank_of(rows[0]))
      return c.fail("rows {} {} and {} {}", dtype_name(c.dtype_of(rows[0])),
                    to_string(c.shape_of(rows[0])), dtype_name(c.dtype_of(row)),
                    to_string(c.shape_of(row)));
  const Shapes shapes{.values = rows, .is_there = is_there, .axis = {}};
  HONE_ASSIGN_OR_RETURN(const CommonShape common,
                        common_shape(c, shapes, "rows of different shapes"));
  StackedRows stacked{.row = common.parts};
  if (common.is_checked()) {
    ExtentsCheck check{.is_there = is_there, .dims = common.differs, .text = text_of_fault(c)};
    for (const ValueId row : rows) check.extents.push_back(actual_extents(c, row));
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> checked, check_extents(c, check, {}));
    for (size_t d = 0; d < common.parts.size(); ++d)
      if (common.differs[d]) stacked.row[d] = {checked[0], static_cast<int64_t>(d)};
  }
  std::vector<ValueId> parts;
  for (const ValueId row : rows)
    parts.push_back(c.add("Unsqueeze", {in_common_shape(c, row, common, {}),
                                        c.integers({static_cast<int64_t>(axis)})}));
  stacked.value = c.add("Concat", parts, {{"axis", static_cast<int64_t>(axis)}});
  return stacked;
}

Status RepeatedRows::add(const SubgraphBody& body, size_t output, ValueId row, bool reversed) {
  ExpandContext& inner = loop_.body();
  const ValueId extents = inner.extents_of(row);
  std::vector<std::optional<int64_t>> known;
  std::vector<bool> dims;
  for (int64_t d = 0; d < inner.rank_of(row); ++d) {
    known.push_back(extents == kNoValue
                        ? inner.shape_of(row)[static_cast<size_t>(d)]
                        : known_element(inner.graph(), inner.nodes(), {extents, d}));
    dims.push_back(!known.back());
  }
  const Shape none = shape_of_no_row(inner, body, output, row);
  row = without_extents(inner, row);
  for (size_t d = 0; d < known.size(); ++d)
    if (known[d]) row = inner.slice(row, static_cast<int64_t>(d), 0, *known[d]);
  ValueId next = kNoValue;
  if (std::find(dims.begin(), dims.end(), true) != dims.end()) {
    const ValueId first = loop_.carry(c_.integers(none));
    const ValueId is_later = inner.binary("Greater", loop_.turn(), 0.0);
    const ExtentsCheck check{.extents = {first, extents},
                             .is_there = {kNoValue, is_later},
                             .dims = dims,
                             .text = text_of_fault(c_)};
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, check_extents(inner, check, {extents}));
    next = made[1];
  }
  rows_.push_back({row, reversed});
  known_.push_back(std::move(known));
  next_.push_back(next);
  return inner.status();
}

void RepeatedRows::add_next(std::vector<ValueId>& next) const {
  std::copy_if(next_.begin(), next_.end(), std::back_inserter(next),
               [](ValueId id) { return id != kNoValue; });
}

std::vector<ExtentPart> RepeatedRows::shape(const LoopResults& made, size_t i) const {
  const auto is_decided = [](ValueId id) { return id != kNoValue; };
  const auto place = std::count_if(next_.begin(), next_.begin() + static_cast<long>(i), is_decided);
  const auto all = std::count_if(next_.begin(), next_.end(), is_decided);
  const auto first = std::ssize(made.carried) - all;
  std::vector<ExtentPart> parts;
  for (const std::optional<int64_t>& number : known_[i])
    parts.push_back(
        number ? ExtentPart{kNoValue, *number}
               : ExtentPart{made.carried[static_cast<size_t>(first + place)], std::ssize(parts)});
  return parts;
}

}  // namespace hone::graph
