// Rules for shapes that vary, of operators that write at places: ScatterElements, ScatterND,
// TensorScatter. Updates end where those of a run do, or those that a run does not have are written
// behind the data's last place, which is cut off.
#include <algorithm>

#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

bool any_varies(const SizeRule& rule, ValueId id) {
  return !rule.sizes.graph().value(id).forms.empty();
}

// Makes the result with one more place along a dimension of the data, to which the indices lead
// that a run does not have. `dims` are the dimensions of the indices.
void build_with_spare_place(SizeRule& rule, size_t axis, const std::vector<size_t>& dims) {
  ExpandContext& c = rule.c;
  const ValueId data = rule.node.inputs[0], out = rule.node.outputs[0];
  const int64_t most = c.shape_of(data)[axis];
  const auto along = static_cast<int64_t>(axis);
  Shape spare = c.shape_of(data);
  spare[axis] = 1;
  const ValueId longer =
      c.add("Concat", {data, uniform(c, c.dtype_of(data), spare, 0)}, {{"axis", along}});
  const ValueId places = rule.sizes.filled(c, rule.node.inputs[1], dims, static_cast<double>(most));
  const ValueId written = c.add_like(rule.node, {longer, places, rule.node.inputs[2]});
  const ShapeParts parts = rule.sizes.parts_of(out);
  c.result(0, c.slice(written, along, 0, most));
  rule.sizes.set_parts(out, parts);
  rule.replaced = true;
}

// Tells the operator how many indices a run has along dimensions of them; false if the elements of
// one lie apart, or if the operator cannot be told.
bool count_updates(SizeRule& rule, const std::vector<size_t>& dims) {
  const ValueId indices = rule.node.inputs[1];
  const ShapeParts parts = rule.sizes.parts_of(indices);
  const bool side_by_side =
      std::all_of(dims.begin(), dims.end(), [&](size_t d) { return is_contiguous(parts[d]); });
  if (!side_by_side || !counts_in_bodies(rule)) return false;
  for (const size_t d : dims) {
    if (rule.sizes.varies(indices, d)) {
      rule.node.inputs.resize(std::max(rule.node.inputs.size(), 4 + d), kNoValue);
      rule.node.inputs[3 + d] = count_of(rule, parts[d]);
    }
  }
  if (rule.node.type == "Scatter") rule.node.type = "ScatterElements";
  take_counts(rule);
  return true;
}

Status follow_scatter_elements(SizeRule& rule) {
  ValueId& data = rule.node.inputs[0];
  const size_t axis = axis_of(rule, 0);
  std::vector<size_t> dims, counted;
  for (size_t d = 0; d < rule.c.shape_of(data).size(); ++d) {
    dims.push_back(d);
    DimParts parts;
    std::vector<SharedDim> shared = {{&rule.node.inputs[1], d}, {&rule.node.inputs[2], d}};
    const bool same = rule.c.shape_of(data)[d] == rule.c.shape_of(rule.node.inputs[1])[d];
    if (d != axis && same) shared.push_back({&data, d});
    HONE_RETURN_IF_ERROR(share_parts(rule, shared, parts));
    if (d == axis || !same) HONE_RETURN_IF_ERROR(make_contiguous(rule, data, d));
    if (d == axis || !same) counted.push_back(d);
  }
  const DimParts extent = rule.sizes.parts_of(data)[axis];
  const bool grows = any_varies(rule, rule.node.inputs[1]);
  HONE_RETURN_IF_ERROR(read_indices(rule, 1, extent, rule.sizes.varies(data, axis) || grows));
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(data));
  if (grows && !count_updates(rule, counted)) build_with_spare_place(rule, axis, dims);
  return ok_status();
}

}  // namespace

void read_tuples(SizeRule& rule, size_t operand, const ShapeParts& parts, size_t first,
                 size_t depth) {
  ExpandContext& c = rule.c;
  ValueId& tuples = rule.node.inputs[operand];
  std::vector<ValueId> extents;
  for (size_t d = first; d < first + depth; ++d)
    extents.push_back(c.reshape(rule.sizes.extent_of(c, parts[d]), {1}));
  const ShapeParts own = rule.sizes.parts_of(tuples);
  const ValueId size =
      c.cast(depth == 1 ? extents[0] : c.add("Concat", extents, {{"axis", int64_t{0}}}),
             c.dtype_of(tuples));
  tuples = c.add("Where", {c.binary("Less", tuples, 0.0), c.binary("Add", tuples, size), tuples});
  tuples = c.binary("Max", c.binary("Min", tuples, c.binary("Add", size, -1.0)), 0.0);
  rule.sizes.set_parts(tuples, own);
}

namespace {

Status follow_scatter_nd(SizeRule& rule) {
  ValueId& data = rule.node.inputs[0];
  const Shape indices = rule.c.shape_of(rule.node.inputs[1]);
  const auto depth = static_cast<size_t>(indices.back());
  const size_t rows = indices.size() - 1;
  std::vector<size_t> dims;
  for (size_t d = 0; d < rows; ++d) {
    DimParts parts;
    dims.push_back(d);
    HONE_RETURN_IF_ERROR(
        share_parts(rule, {{&rule.node.inputs[1], d}, {&rule.node.inputs[2], d}}, parts));
  }
  bool moves = false;
  for (size_t d = 0; d < rule.c.shape_of(data).size(); ++d) {
    DimParts parts;
    if (d < depth) {
      HONE_RETURN_IF_ERROR(make_contiguous(rule, data, d));
      moves = moves || rule.sizes.varies(data, d);
    } else {
      HONE_RETURN_IF_ERROR(
          share_parts(rule, {{&data, d}, {&rule.node.inputs[2], rows + d - depth}}, parts));
    }
  }
  const bool grows = any_varies(rule, rule.node.inputs[1]);
  if (moves || grows) read_tuples(rule, 1, rule.sizes.parts_of(data), 0, depth);
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(data));
  if (grows && !count_updates(rule, dims)) build_with_spare_place(rule, 0, dims);
  return ok_status();
}

// Which elements along the axis come from the update of a run. Its first one is written where the
// indices say.
ValueId written_places(SizeRule& rule, size_t axis, bool circular) {
  ExpandContext& c = rule.c;
  const Shape shape = c.shape_of(rule.node.inputs[0]);
  ValueId place = along(c, numbers_from_0(c, shape[axis]), axis, shape.size());
  if (rule.node.has_input(2)) {
    const ValueId start = c.cast(rule.node.inputs[2], DType::kI64);
    place = c.binary("Sub", place, along(c, start, 0, shape.size()));
  }
  if (circular) place = c.binary("Mod", place, static_cast<double>(shape[axis]));
  const ValueId count = rule.sizes.extent_of(c, rule.sizes.parts_of(rule.node.inputs[1])[axis]);
  return are_inside(c, place, count);
}

Status follow_tensor_scatter(SizeRule& rule) {
  ValueId &data = rule.node.inputs[0], &update = rule.node.inputs[1];
  const ValueId out = rule.node.outputs[0];
  const size_t axis = axis_of(rule, -2);
  const bool circular = rule.node.attributes.text("mode", "linear") == "circular";
  for (size_t d = 0; d < rule.c.shape_of(data).size(); ++d) {
    std::vector<SharedDim> shared = {{&data, d}, {&update, d}};
    if (d == 0 && rule.node.has_input(2)) shared.push_back({&rule.node.inputs[2], 0});
    DimParts parts;
    if (d != axis) HONE_RETURN_IF_ERROR(share_parts(rule, shared, parts));
  }
  HONE_RETURN_IF_ERROR(make_contiguous(rule, data, axis));
  HONE_RETURN_IF_ERROR(make_contiguous(rule, update, axis));
  if (circular && rule.sizes.varies(data, axis)) {
    return rule.c.unsupported(
        "mode 'circular' along dimension {}, which varies from run to run: give one size for it "
        "(--shape)",
        axis);
  }
  const ShapeParts parts = rule.sizes.parts_of(data);
  if (rule.sizes.varies(update, axis)) {
    const ValueId written = rule.c.add_like(rule.node, rule.node.inputs);
    rule.c.result(0, rule.c.add("Where", {written_places(rule, axis, circular), written, data}));
    rule.replaced = true;
  }
  rule.sizes.set_parts(out, parts);
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"Scatter", follow_scatter_elements},
    {"ScatterElements", follow_scatter_elements},
    {"ScatterND", follow_scatter_nd},
    {"TensorScatter", follow_tensor_scatter},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_scatters() { return kRules; }

}  // namespace hone::graph
