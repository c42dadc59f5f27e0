// Rules for shapes that vary, of operators that take elements at places: Gather, TopK.
#include <algorithm>
#include <limits>

#include "hone/graph/size_follower.h"
#include "hone/graph/size_values.h"

namespace hone::graph {
namespace {

// Known indices have to be there at each size, as far as a run of this size has them. Of each
// `depth` numbers, `component` is an index of the dimension.
Status check_known(const SizeRule& rule, ValueId indices, const DimParts& extent,
                   size_t component = 0, size_t depth = 1) {
  const Varying& varying = rule.sizes.graph().varying;
  for (const SizeProbe& probe : rule.sizes.probes()) {
    const Value* twin = probe.twin(rule.sizes.origin(indices));
    const bool known = twin != nullptr && twin->constant;
    const Tensor& here = known ? *twin->constant : *rule.c.constant_of(indices);
    const auto count =
        static_cast<double>(shape_of({extent}, {0}, sizes_of(varying, probe.symbols))[0]);
    for (auto i = static_cast<int64_t>(component); i < here.size();
         i += static_cast<int64_t>(depth)) {
      if (here.at(i) < -count || here.at(i) >= count)
        return rule.c.unsupported(
            "index {} of a dimension that may have as few as {} elements: give a range that begins "
            "higher (--shape)",
            here.at(i), count);
    }
  }
  return ok_status();
}

}  // namespace

Status read_indices(SizeRule& rule, size_t operand, const DimParts& extent, bool varies) {
  if (!varies) return ok_status();
  ExpandContext& c = rule.c;
  ValueId& indices = rule.node.inputs[operand];
  if (const Tensor* known = c.constant_of(indices)) {
    HONE_RETURN_IF_ERROR(check_known(rule, indices, extent));
    bool from_end = false;
    for (int64_t i = 0; i < known->size(); ++i) from_end = from_end || known->at(i) < 0;
    if (!from_end) return ok_status();
  }
  const ShapeParts parts = rule.sizes.parts_of(indices);
  const ValueId size = c.cast(rule.sizes.extent_of(c, extent), c.dtype_of(indices));
  indices =
      c.add("Where", {c.binary("Less", indices, 0.0), c.binary("Add", indices, size), indices});
  const ValueId last = c.binary("Add", size, -1.0);
  indices = c.binary("Max", c.binary("Min", indices, last), 0.0);
  rule.sizes.set_parts(indices, parts);
  return ok_status();
}

namespace {

Status follow_gather(SizeRule& rule) {
  ValueId& data = rule.node.inputs[0];
  const size_t axis = axis_of(rule, 0);
  HONE_RETURN_IF_ERROR(make_contiguous(rule, data, axis));
  const ShapeParts from = rule.sizes.parts_of(data);
  HONE_RETURN_IF_ERROR(read_indices(rule, 1, from[axis], rule.sizes.varies(data, axis)));
  const ShapeParts indices = rule.sizes.parts_of(rule.node.inputs[1]);
  ShapeParts parts(from.begin(), from.begin() + static_cast<long>(axis));
  parts.insert(parts.end(), indices.begin(), indices.end());
  parts.insert(parts.end(), from.begin() + static_cast<long>(axis) + 1, from.end());
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

Status follow_gather_elements(SizeRule& rule) {
  ValueId& data = rule.node.inputs[0];
  const size_t axis = axis_of(rule, 0);
  HONE_RETURN_IF_ERROR(make_contiguous(rule, data, axis));
  const ShapeParts from = rule.sizes.parts_of(data);
  const ShapeParts places = rule.sizes.parts_of(rule.node.inputs[1]);
  for (size_t d = 0; d < from.size(); ++d) {
    DimParts shared = from[d];
    if (d != axis && rule.c.shape_of(rule.node.inputs[1])[d] != 1)
      HONE_RETURN_IF_ERROR(join_parts(rule, shared, places[d]));
  }
  const DimParts extent = from[axis];
  HONE_RETURN_IF_ERROR(read_indices(rule, 1, extent, rule.sizes.varies(data, axis)));
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(rule.node.inputs[1]));
  return ok_status();
}

Status follow_gather_nd(SizeRule& rule) {
  ValueId& data = rule.node.inputs[0];
  const auto batch = static_cast<size_t>(rule.node.attributes.integer("batch_dims", 0));
  const auto depth = static_cast<size_t>(rule.c.shape_of(rule.node.inputs[1]).back());
  bool varies = false;
  for (size_t d = batch; d < batch + depth; ++d) {
    varies = varies || rule.sizes.varies(data, d);
    HONE_RETURN_IF_ERROR(make_contiguous(rule, data, d));
  }
  const ValueId indices = rule.node.inputs[1];
  const bool known = varies && rule.c.constant_of(indices) != nullptr;
  for (size_t d = batch; known && d < batch + depth; ++d) {
    if (rule.sizes.varies(data, d))
      HONE_RETURN_IF_ERROR(
          check_known(rule, indices, rule.sizes.parts_of(data)[d], d - batch, depth));
  }
  if (varies) read_tuples(rule, 1, rule.sizes.parts_of(data), batch, depth);
  ShapeParts parts = rule.sizes.parts_of(rule.node.inputs[1]);
  parts.pop_back();
  const ShapeParts from = rule.sizes.parts_of(data);
  for (size_t d = 0; d < batch; ++d) HONE_RETURN_IF_ERROR(join_parts(rule, parts[d], from[d]));
  parts.insert(parts.end(), from.begin() + static_cast<long>(batch + depth), from.end());
  rule.sizes.set_parts(rule.node.outputs[0], std::move(parts));
  return ok_status();
}

// Rows are reversed as far as the run has elements.
Status follow_reverse_sequence(SizeRule& rule) {
  ValueId &x = rule.node.inputs[0], &lengths = rule.node.inputs[1];
  const auto batch = static_cast<size_t>(rule.node.attributes.integer("batch_axis", 1));
  const size_t time = 1 - batch;
  HONE_RETURN_IF_ERROR(make_contiguous(rule, x, time));
  DimParts rows;
  HONE_RETURN_IF_ERROR(share_parts(rule, {{&x, batch}, {&lengths, 0}}, rows));
  if (rule.sizes.varies(x, time)) {
    const ValueId extent = rule.sizes.extent_of(rule.c, rule.sizes.parts_of(x)[time]);
    lengths = rule.c.binary("Min", lengths, rule.c.cast(extent, rule.c.dtype_of(lengths)));
    rule.sizes.set_parts(lengths, {rows});
  }
  rule.sizes.set_parts(rule.node.outputs[0], rule.sizes.parts_of(x));
  return ok_status();
}

Status follow_top_k(SizeRule& rule) {
  const size_t axis = axis_of(rule, -1);
  HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], axis));
  const ValueId x = rule.node.inputs[0];
  const double worst = std::numeric_limits<double>::infinity() *
                       (rule.node.attributes.integer("largest", 1) != 0 ? -1 : 1);
  ShapeParts parts = rule.sizes.parts_of(x);
  for (const ValueId out : rule.node.outputs) {
    if (out == kNoValue) continue;
    HONE_ASSIGN_OR_RETURN(const SizePart seen, part_of(rule, out, axis));
    parts[axis] = {seen};
    rule.sizes.set_parts(out, parts);
  }
  rule.node.inputs[0] = rule.sizes.filled(rule.c, x, {axis}, worst);
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {
    {"Gather", follow_gather},
    {"GatherElements", follow_gather_elements},
    {"GatherND", follow_gather_nd},
    {"TopK", follow_top_k, 0b10},
    {"ReverseSequence", follow_reverse_sequence},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_places() { return kRules; }

}  // namespace hone::graph
