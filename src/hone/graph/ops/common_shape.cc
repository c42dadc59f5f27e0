#include "hone/graph/ops/common_shape.h"

#include <algorithm>

#include "hone/graph/ops/loop_builder.h"
#include "hone/graph/ops/taken_branch.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

bool is_number(const ExtentPart& part) { return part.extents == kNoValue; }

// Returns whether some run lacks value i.
bool may_be_missing(const std::vector<ValueId>& is_there, size_t i) {
  return i < is_there.size() && is_there[i] != kNoValue;
}

}  // namespace

bool CommonShape::is_checked() const {
  return std::find(differs.begin(), differs.end(), true) != differs.end();
}

Result<CommonShape> common_shape(ExpandContext& c, const Shapes& shapes, const std::string& text) {
  const ValueId first = shapes.values[0];
  CommonShape common{.most = c.shape_of(first), .parts = {}, .differs = {}};
  bool all_there = true;
  for (size_t i = 0; i < shapes.values.size(); ++i)
    all_there = all_there && !may_be_missing(shapes.is_there, i);
  for (size_t d = 0; d < common.most.size(); ++d) {
    common.parts.push_back(part_of(c, first, d));
    common.differs.push_back(false);
    ExtentPart& part = common.parts.back();
    for (size_t i = 1; i < shapes.values.size() && d != shapes.axis; ++i) {
      const ValueId x = shapes.values[i];
      const ExtentPart other = part_of(c, x, d);
      const int64_t most = c.shape_of(x)[d];
      const bool is_same = are_same(c, part, other);
      const bool is_certain = !may_be_missing(shapes.is_there, i);
      if (is_certain && !is_same && is_number(part) && is_number(other))
        return c.fail("{}: {} and {}", text, to_string(c.shape_of(first)),
                      to_string(c.shape_of(x)));
      common.differs[d] = common.differs[d] || !is_same;
      if (is_certain && is_number(other)) part = other;
      common.most[d] = is_certain ? std::min(common.most[d], most) : std::max(common.most[d], most);
    }
    if (is_number(part) && all_there && d != shapes.axis)
      common.most[d] = std::min(common.most[d], part.dim);
  }
  return common;
}

Result<std::vector<ValueId>> check_extents(ExpandContext& c, const ExtentsCheck& check,
                                           const std::vector<ValueId>& values) {
  const auto rank = std::ssize(check.dims);
  std::vector<ValueId> rows, there;
  for (size_t i = 0; i < check.extents.size(); ++i) {
    rows.push_back(c.reshape(check.extents[i], {1, rank}));
    there.push_back(may_be_missing(check.is_there, i)
                        ? c.cast(c.reshape(check.is_there[i], {1}), DType::kI64)
                        : c.integers({1}));
  }
  const ValueId all = c.add("Concat", rows, {{"axis", int64_t{0}}});
  const ValueId differ = c.cast(c.add("Not", {c.binary("Equal", all, rows[0])}), DType::kI64);
  const ValueId compared = c.integers({check.dims.begin(), check.dims.end()});
  const ValueId wrong =
      c.binary("Mul", c.reduce("ReduceMax", c.binary("Mul", differ, compared), {1}, false),
               c.add("Concat", there, {{"axis", int64_t{0}}}));
  const ValueId place = c.add("ArgMax", {wrong}, {{"axis", int64_t{0}}});
  const ValueId fails = c.cast(c.reshape(c.add("Gather", {wrong, place}), {}), DType::kBool);
  const ValueId other = c.reshape(c.add("Gather", {all, place}), {rank});
  std::vector<ValueId> same = {c.add("Concat", {check.extents[0], other}, {{"axis", int64_t{0}}})};
  same.insert(same.end(), values.begin(), values.end());
  HONE_ASSIGN_OR_RETURN(
      same, LoopBuilder::add_fault(c, fails, {.beyond = check.text, .names_shapes = true}, same));
  same[0] = c.slice(same[0], 0, 0, rank);
  return same;
}

ValueId in_common_shape(ExpandContext& c, ValueId x, const CommonShape& common,
                        std::optional<size_t> axis) {
  x = without_extents(c, x);
  Shape shape = common.most;
  if (axis) shape[*axis] = c.shape_of(x)[*axis];
  for (size_t d = 0; d < shape.size(); ++d)
    if (c.shape_of(x)[d] > shape[d]) x = c.slice(x, static_cast<int64_t>(d), 0, shape[d]);
  return grown(c, x, shape);
}

}  // namespace hone::graph
