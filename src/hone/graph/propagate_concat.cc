// Concat of values whose shape depends on data. A run in which their other extents differ fails.
#include "hone/graph/node_names.h"
#include "hone/graph/ops/common_shape.h"
#include "hone/graph/propagate_dynamic_shapes.h"

namespace hone::graph {
namespace {

// Returns the order in which a dimension is the first one, or, if `back`, that of the way back.
std::vector<int64_t> order_from(size_t axis, size_t rank, bool back) {
  std::vector<int64_t> perm(rank);
  size_t next = 1;
  for (size_t d = 0; d < rank; ++d) {
    const size_t to = d == axis ? 0 : next++;
    perm[back ? d : to] = static_cast<int64_t>(back ? to : d);
  }
  return perm;
}

// Returns the operands that may have elements.
Result<Shapes> operands_of(const ExpandContext& c, size_t axis) {
  Shapes shapes{.axis = axis};
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.has(i) || c.shape(i).size() != c.shape(0).size())
      return c.fail("operand {}, expected one of rank {}", i, c.shape(0).size());
    if (num_elements(c.shape(i)) > 0) shapes.values.push_back(c.input(i));
  }
  if (shapes.values.empty()) return c.unsupported("operands without elements");
  return shapes;
}

}  // namespace

Status propagate_concat(ExpandContext& c) {
  const size_t rank = c.shape(0).size();
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_of(c, 0, rank));
  HONE_ASSIGN_OR_RETURN(const Shapes shapes, operands_of(c, axis));
  HONE_ASSIGN_OR_RETURN(const CommonShape common, common_shape(c, shapes, "operands of shapes"));
  std::vector<ValueId> operands, counts;
  for (const ValueId x : shapes.values) {
    operands.push_back(
        c.transpose(in_common_shape(c, x, common, axis), order_from(axis, rank, false)));
    counts.push_back(dimension(c, actual_extents(c, x), static_cast<int64_t>(axis)));
  }
  ValueId count = c.add("Concat", counts, {{"axis", int64_t{0}}});
  if (common.is_checked()) {
    ExtentsCheck check{.dims = common.differs,
                       .text = fmt::format("{}: its operands have different shapes in this run, "
                                           "other than along axis {}",
                                           name_and_type(c.node()), axis)};
    for (const ValueId x : shapes.values) check.extents.push_back(actual_extents(c, x));
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, check_extents(c, check, {count}));
    count = made[1];
  }
  operands.push_back(count);
  const ValueId y = c.transpose(c.add("hone.Append", operands), order_from(axis, rank, true));
  std::vector<ExtentPart> shape = common.parts;
  shape[axis] = {c.reduce("ReduceSum", count, {0}), 0};
  c.result(0, with_extents(c, y, join_extents(c, shape)));
  return ok_status();
}

}  // namespace hone::graph
