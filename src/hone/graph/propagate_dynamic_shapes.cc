// Operators on operands whose shape depends on data. Results are computed for the largest shape,
// after elements beyond the extents were made harmless, and get the extents that follow.
#include "hone/graph/propagate_dynamic_shapes.h"

#include <algorithm>
#include <limits>

#include "hone/graph/extents.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/ops/registry.h"
#include "hone/tensor/fill.h"

namespace hone::graph {
namespace {

// Returns whether indices into dimensions of operand 0 may count from an end that a run has.
bool may_count_from_end(const ExpandContext& c, ValueId indices) {
  if (!varies(c, 0)) return false;
  const Tensor* known = c.constant_of(indices);
  if (known == nullptr) return true;
  for (int64_t i = 0; i < known->size(); ++i)
    if (known->at(i) < 0) return true;
  return false;
}

Status propagate_gather(ExpandContext& c) {
  const ValueId data = c.input(0), indices = c.input(1);
  const size_t rank = c.shape(0).size();
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_of(c, 0, rank));
  ValueId places = safe_indices(c, indices);
  if (may_count_from_end(c, places)) {
    const ValueId extent = dimension(c, actual_extents(c, data), static_cast<int64_t>(axis));
    places = indices_from_begin(c, places, c.reshape(extent, {}));
  }
  const ValueId y =
      c.add("Gather", {without_extents(c, data), places}, {{"axis", static_cast<int64_t>(axis)}});
  const std::vector<ExtentPart> shape =
      joined(joined(parts(c, data, 0, axis), parts(c, indices, 0, c.shape(1).size())),
             parts(c, data, axis + 1, rank));
  c.result(0, with_extents(c, y, join_extents(c, shape)));
  return ok_status();
}

Status propagate_gather_nd(ExpandContext& c) {
  if (c.shape(1).empty()) return c.fail("indices without a dimension");
  const ValueId data = c.input(0), indices = c.input(1);
  const size_t rank = c.shape(0).size(), last = c.shape(1).size() - 1;
  const auto depth = static_cast<size_t>(c.shape(1)[last]);
  if (c.attributes().integer("batch_dims", 0) != 0 || depth > rank)
    return c.unsupported("indices whose shape depends on data");
  ValueId places = safe_indices(c, indices);
  if (may_count_from_end(c, places))
    places = indices_from_begin(c, places, join_extents(c, parts(c, data, 0, depth)));
  const ValueId y = c.add("GatherND", {without_extents(c, data), places});
  const std::vector<ExtentPart> shape =
      joined(parts(c, indices, 0, last), parts(c, data, depth, rank));
  c.result(0, with_extents(c, y, join_extents(c, shape)));
  return ok_status();
}

Status propagate_top_k(ExpandContext& c) {
  if (!c.has(1)) return c.unsupported("data of varying shape and k as an attribute");
  const ValueId data = c.input(0), k = c.input(1);
  const size_t rank = c.shape(0).size();
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_of(c, -1, rank));
  const Tensor* upper = c.upper_of(k);
  if (upper == nullptr || upper->size() != 1) return c.required(1, "k").status();
  const int64_t most = std::min(integer_at(*upper, 0), c.shape(0)[axis]);
  const int64_t largest = c.attributes().integer("largest", 1);
  const double worst = std::numeric_limits<double>::infinity() * (largest != 0 ? -1 : 1);
  const std::vector<ValueId> found =
      c.add_all("TopK", {filled(c, data, worst), c.integers({most})}, 2,
                {{"axis", static_cast<int64_t>(axis)}, {"largest", largest}});
  const std::vector<ExtentPart> shape = joined(
      joined(parts(c, data, 0, axis), {{c.reshape(k, {1}), 0}}), parts(c, data, axis + 1, rank));
  const ValueId extents = join_extents(c, shape);
  for (size_t i = 0; i < 2; ++i) c.result(i, with_extents(c, found[i], extents));
  return ok_status();
}

Status propagate_constant_of_shape(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Shape shape, largest_shape(c, 0));
  const Tensor* value = c.attributes().find<Tensor>("value");
  if (value != nullptr && value->size() != 1) return c.fail("the value is no single element");
  HONE_ASSIGN_OR_RETURN(Tensor tensor,
                        c.new_constant(value != nullptr ? value->dtype() : DType::kF32, shape));
  if (value != nullptr) fill_with(tensor, *value);
  c.result(0, with_extents(c, c.constant(std::move(tensor)), c.input(0)));
  return ok_status();
}

// What is not there is less than anything.
Status propagate_softmax(ExpandContext& c) {
  const ValueId x = c.input(0);
  const bool flattens = c.opset() < 13;
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_of(c, flattens ? 1 : -1, c.shape(0).size()));
  if (flattens && axis + 1 != c.shape(0).size())
    return c.unsupported("several dimensions of a value whose shape depends on data");
  const ValueId y = c.add(std::string(c.node().type).c_str(),
                          {filled(c, x, -std::numeric_limits<double>::infinity())},
                          {{"axis", static_cast<int64_t>(axis)}});
  c.result(0, with_extents(c, y, actual_extents(c, x)));
  return ok_status();
}

Status propagate_non_zero(ExpandContext& c) {
  c.result(0, c.add("NonZero", {filled(c, c.input(0), 0)}));
  return ok_status();
}

// Boxes that are not there have a score below every threshold.
Status propagate_non_max_suppression(ExpandContext& c) {
  std::vector<ValueId> operands = {without_extents(c, c.input(0)),
                                   filled(c, c.input(1), -std::numeric_limits<double>::infinity())};
  const auto given = [&](size_t i) { return c.has(i) ? without_extents(c, c.input(i)) : kNoValue; };
  for (size_t i = 2; i < 4; ++i) operands.push_back(given(i));
  operands.push_back(c.has(4) ? given(4)
                              : c.scalar(c.dtype(1), -std::numeric_limits<float>::max()));
  c.result(0, c.add("NonMaxSuppression", operands,
                    {{"center_point_box", c.attributes().integer("center_point_box", 0)}}));
  return ok_status();
}

// Sums and products of what comes before, or behind.
Status propagate_running(ExpandContext& c) {
  const double neutral = c.node().type == "CumProd" ? 1 : 0;
  const ValueId y = c.add_like(c.node(), {filled(c, c.input(0), neutral), c.input(1)});
  c.result(0, with_extents(c, y, actual_extents(c, c.input(0))));
  return ok_status();
}

// Which elements stay follows from their places.
Status propagate_trilu(ExpandContext& c) {
  std::vector<ValueId> operands = c.node().inputs;
  operands[0] = without_extents(c, c.input(0));
  const ValueId y = c.add_like(c.node(), operands);
  c.result(0, with_extents(c, y, actual_extents(c, c.input(0))));
  return ok_status();
}

Status propagate_size(ExpandContext& c) {
  c.result(0, c.reduce("ReduceProd", actual_extents(c, c.input(0)), {0}, false));
  return ok_status();
}

struct Follower {
  std::string_view type;
  Status (*follow)(ExpandContext&);
  int shape_operand = -1;  // follows, too, if this one is not known but bounded
  int first_number = -1;   // follows, too, if this operand or the next one is not known
};

constexpr Follower kFollowers[] = {
    {"ArgMax", propagate_arg_max},
    {"ArgMin", propagate_arg_min},
    {"CenterCropPad", propagate_center_crop_pad},
    {"Concat", propagate_concat},
    {"ConstantOfShape", propagate_constant_of_shape, 0},
    {"CumProd", propagate_running},
    {"CumSum", propagate_running},
    {"Einsum", propagate_einsum},
    {"Expand", propagate_expand, 1},
    {"Flatten", propagate_flatten},
    {"Gather", propagate_gather},
    {"GatherElements", propagate_gather_elements},
    {"GatherND", propagate_gather_nd},
    {"Hardmax", propagate_softmax},
    {"LogSoftmax", propagate_softmax},
    {"MatMul", propagate_matmul},
    {"NonMaxSuppression", propagate_non_max_suppression},
    {"NonZero", propagate_non_zero},
    {"Pad", propagate_pad},
    {"Range", propagate_range, -1, 0},
    {"ReduceL1", propagate_reduce_of_zeros},
    {"ReduceL2", propagate_reduce_of_zeros},
    {"ReduceLogSum", propagate_reduce_of_zeros},
    {"ReduceLogSumExp", propagate_reduce_log_sum_exp},
    {"ReduceMax", propagate_reduce_max},
    {"ReduceMean", propagate_mean},
    {"ReduceMin", propagate_reduce_min},
    {"ReduceProd", propagate_reduce_prod},
    {"ReduceSum", propagate_reduce_sum},
    {"ReduceSumSquare", propagate_reduce_of_zeros},
    {"Reshape", propagate_reshape},
    {"ScatterElements", propagate_scatter_elements},
    {"ScatterND", propagate_scatter_nd},
    {"Size", propagate_size},
    {"Slice", propagate_slice, -1, 1},
    {"Softmax", propagate_softmax},
    {"Tile", propagate_tile},
    {"TopK", propagate_top_k, 1},
    {"Trilu", propagate_trilu},
};

// Pointwise operators, whose operands are aligned from their last dimensions.
Result<bool> follow_pointwise(ExpandContext& c) {
  if (c.node().op->kind != Kind::kElementwise || c.node().type == "BatchNormalization")
    return false;
  return propagate_pointwise(c);
}

// Operators that no table names alone.
Result<bool> follow_kind(Graph& graph, const Node& node, std::vector<Node>& nodes) {
  if (node.op == nullptr || std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
        return in != kNoValue && graph.value(in).extents != kNoValue;
      }))
    return false;
  ExpandContext context(graph, node, nodes);
  HONE_ASSIGN_OR_RETURN(bool followed, propagate_rows(context));
  if (!followed) {
    HONE_ASSIGN_OR_RETURN(followed, propagate_squeeze(context));
  }
  if (!followed) {
    HONE_ASSIGN_OR_RETURN(followed, follow_pointwise(context));
  }
  HONE_RETURN_IF_ERROR(context.status());
  return followed;
}

}  // namespace

Result<bool> propagate_dynamic_shapes(Graph& graph, const Node& node, std::vector<Node>& nodes) {
  // A missing operand is an error, which infer_node() reports.
  for (int i = 0; node.op != nullptr && i < node.op->min_inputs; ++i) {
    if (!node.has_input(static_cast<size_t>(i))) return false;
  }
  const auto at = std::find_if(std::begin(kFollowers), std::end(kFollowers),
                               [&](const Follower& f) { return f.type == node.type; });
  if (at == std::end(kFollowers)) return follow_kind(graph, node, nodes);
  bool applies = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.has_input(i)) continue;
    const Value& value = graph.value(node.inputs[i]);
    applies |= value.extents != kNoValue;
    const auto operand = static_cast<int>(i);
    applies |= operand == at->shape_operand && !value.constant && value.upper;
    const bool is_number = operand == at->first_number || operand == at->first_number + 1;
    applies |= at->first_number >= 0 && is_number && !value.constant;
  }
  if (!applies) return false;
  ExpandContext context(graph, node, nodes);
  HONE_RETURN_IF_ERROR(at->follow(context));
  HONE_RETURN_IF_ERROR(context.status());
  return true;
}

}  // namespace hone::graph
