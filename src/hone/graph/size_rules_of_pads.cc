// Rules for shapes that vary, of Pad and CenterCropPad.
#include "hone/graph/integer_at.h"
#include "hone/graph/ops/pad.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// Which of n elements stand where a padded dimension has them: `from` is 0 where its first one is.
ValueId places_in(ExpandContext& c, const std::string& mode, ValueId from, ValueId n) {
  const ValueId last = c.binary("Sub", n, 1.0);
  if (mode == "edge") return c.binary("Max", c.binary("Min", from, last), 0.0);
  if (mode == "wrap") return c.binary("Mod", from, c.binary("Max", n, 1.0));
  // Reflected at both ends, again and again where the padding is longer than the data.
  const ValueId period = c.binary("Max", c.binary("Mul", last, 2.0), 1.0);
  const ValueId phase = c.binary("Mod", from, period);
  return c.binary("Min", phase, c.binary("Sub", period, phase));
}

// The fill value, an operand or an attribute.
ValueId fill_of(SizeRule& rule) {
  if (rule.node.has_input(2)) return rule.c.reshape(rule.node.inputs[2], {});
  return rule.c.scalar(rule.c.dtype_of(rule.node.inputs[0]),
                       static_cast<double>(rule.node.attributes.number("value", 0)));
}

// Padding may round an extent up to whole windows.
Result<SizePart> padded_part(SizeRule& rule, size_t d, const DimParts& from) {
  const ValueId out = rule.node.outputs[0];
  if (const auto part = rule.sizes.rounded_part(out, d, from)) return *part;
  return part_of(rule, out, d);
}

// A dimension that is padded, and how many elements come before those of the run, or are taken away
// there if it is negative: an i64 scalar.
struct PaddedDim {
  size_t dim;
  ValueId low;
};

// Elements are gathered from their places in the operand, one dimension after the other. Where
// there is none, and `mode` repeats none, the result is the fill value.
Status build_pad(SizeRule& rule, const std::string& mode, const std::vector<PaddedDim>& padded) {
  ExpandContext& c = rule.c;
  const ValueId out = rule.node.outputs[0];
  for (const PaddedDim& one : padded)
    HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], one.dim));
  ValueId x = rule.node.inputs[0];
  const bool repeats = mode != "constant";
  const ValueId fill = repeats ? kNoValue : fill_of(rule);
  ShapeParts parts = rule.sizes.parts_of(x);
  for (const auto& [d, low] : padded) {
    HONE_ASSIGN_OR_RETURN(const SizePart seen, padded_part(rule, d, parts[d]));
    const ValueId extent = rule.sizes.extent_of(c, parts[d]);
    const ValueId from = c.binary("Sub", numbers_from_0(c, c.shape_of(out)[d]), low);
    ValueId places = repeats ? places_in(c, mode, from, extent) : c.binary("Max", from, 0.0);
    // Elements that a run does not have may come from anywhere.
    places = c.binary("Min", places, static_cast<double>(c.shape_of(x)[d] - 1));
    x = c.add("Gather", {x, places}, {{"axis", static_cast<int64_t>(d)}});
    parts[d] = {seen};
    if (repeats) continue;
    x = c.add("Where", {along(c, are_inside(c, from, extent), d, parts.size()), x, fill});
  }
  c.result(0, x);
  rule.sizes.set_parts(out, std::move(parts));
  rule.replaced = true;
  return ok_status();
}

Status check_cut(const SizeRule& rule, const std::string& mode) {
  if (mode == "constant") return ok_status();
  return rule.c.unsupported(
      "padding of mode '{}' along a dimension that varies, which takes elements away: give one "
      "size for it (--shape)",
      mode);
}

// Elements of the run, repeated at its ends, or with data around them.
Status build_known_pad(SizeRule& rule, const std::string& mode, const Pads& pads) {
  std::vector<PaddedDim> padded;
  for (size_t d = 0; d < pads.low.size(); ++d) {
    if (!pads.any(d)) continue;
    if (pads.low[d] < 0 || pads.high[d] < 0) HONE_RETURN_IF_ERROR(check_cut(rule, mode));
    padded.push_back({d, rule.c.scalar(DType::kI64, static_cast<double>(pads.low[d]))});
  }
  return build_pad(rule, mode, padded);
}

// Checks that operands from this one on, as far as they are constants, are the same at all sizes.
Status check_fixed(const SizeRule& rule, size_t first) {
  for (size_t i = first; i < rule.node.inputs.size(); ++i) {
    const ValueId id = rule.node.inputs[i];
    if (id != kNoValue && rule.c.constant_of(id) != nullptr &&
        rule.sizes.kind_of_constant(id) != ConstantKind::kFixed)
      return rule.c.unsupported("operand {} ('{}') has other elements at other sizes", i,
                                rule.sizes.graph().value(id).name);
  }
  return ok_status();
}

// Padding begins where a run's elements end: there are the same numbers.
Status follow_pad(SizeRule& rule) {
  const ValueId out = rule.node.outputs[0];
  const std::string mode = rule.node.attributes.text("mode", "constant");
  const Tensor* value = rule.node.has_input(2) ? rule.c.constant_of(rule.node.inputs[2]) : nullptr;
  HONE_RETURN_IF_ERROR(check_fixed(rule, 1));
  const bool is_data = rule.node.has_input(2) && value == nullptr;
  const double fill = value != nullptr && value->size() > 0
                          ? value->at(0)
                          : rule.node.attributes.number("value", 0);
  HONE_ASSIGN_OR_RETURN(const Pads pads, pads_of(rule.c));
  if (mode != "constant" || is_data) return build_known_pad(rule, mode, pads);
  std::vector<size_t> all;
  ShapeParts parts = rule.sizes.parts_of(out);
  for (size_t d = 0; d < parts.size(); ++d) {
    if (!rule.sizes.varies(rule.node.inputs[0], d)) continue;
    // The batch is rarely padded, and rows that are not there need no fill.
    parts[d] = rule.sizes.parts_of(rule.node.inputs[0])[d];
    if (!pads.any(d)) continue;
    HONE_ASSIGN_OR_RETURN(const SizePart seen, padded_part(rule, d, parts[d]));
    HONE_RETURN_IF_ERROR(make_contiguous(rule, rule.node.inputs[0], d));
    parts[d] = {seen};
    all.push_back(d);
  }
  rule.node.inputs[0] = rule.sizes.filled(rule.c, rule.node.inputs[0], all, fill);
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

// The numbers of pads at all sizes at which the model was looked at.
std::vector<Tensor> pads_at_probes(const SizeRule& rule, ValueId pads) {
  std::vector<Tensor> found = {*rule.c.constant_of(pads)};
  for (const SizeProbe& probe : rule.sizes.probes()) {
    const Value* twin = probe.twin(rule.sizes.origin(pads));
    if (twin != nullptr && twin->constant) found.push_back(*twin->constant);
  }
  return found;
}

// Pads that differ from run to run are computed in each, as the model computes them.
Status follow_pad_sides(SizeRule& rule) {
  ExpandContext& c = rule.c;
  const std::string mode = rule.node.attributes.text("mode", "constant");
  HONE_RETURN_IF_ERROR(check_fixed(rule, 2));
  const ValueId given = rule.node.inputs[1];
  const std::vector<Tensor> known = pads_at_probes(rule, given);
  HONE_ASSIGN_OR_RETURN(const std::vector<size_t> dims, padded_dims(rule.c));
  HONE_ASSIGN_OR_RETURN(const ValueId at_run_time, rule.sizes.data_at_run_time(c, given));
  const ValueId pads = c.cast(at_run_time, DType::kI64);
  std::vector<PaddedDim> padded;
  for (size_t i = 0; i < dims.size(); ++i) {
    bool any = false, cuts = false;
    for (const Tensor& numbers : known) {
      for (const size_t k : {i, dims.size() + i}) {
        any = any || integer_at(numbers, static_cast<int64_t>(k)) != 0;
        cuts = cuts || integer_at(numbers, static_cast<int64_t>(k)) < 0;
      }
    }
    if (cuts) HONE_RETURN_IF_ERROR(check_cut(rule, mode));
    const auto at = static_cast<int64_t>(i);
    if (any) padded.push_back({dims[i], c.reshape(c.slice(pads, 0, at, at + 1), {})});
  }
  return build_pad(rule, mode, padded);
}

// For an odd number of elements the larger half is at the end.
Status follow_center(SizeRule& rule) {
  ExpandContext& c = rule.c;
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  HONE_ASSIGN_OR_RETURN(const std::vector<size_t> dims, named_dims(c));
  std::vector<PaddedDim> padded;
  for (const size_t d : dims) {
    HONE_ASSIGN_OR_RETURN(const SizePart wanted, part_of(rule, out, d));
    const DimParts given = rule.sizes.parts_of(x)[d];
    if (given.size() == 1 && given[0].form == wanted.form && given[0].most == wanted.most) continue;
    const ValueId more =
        c.binary("Sub", rule.sizes.extent_of(c, {wanted}), rule.sizes.extent_of(c, given));
    const ValueId added = c.binary("Div", c.binary("Max", more, 0.0), 2.0);
    const ValueId taken = c.binary("Div", c.binary("Min", more, 0.0), -2.0);
    padded.push_back({d, c.binary("Sub", added, taken)});
  }
  return build_pad(rule, "constant", padded);
}

constexpr SizeRuleOf kRules[] = {
    {"Pad", follow_pad, 0b1110},
    {"hone.PadSides", follow_pad_sides, 0b1010},
    {"hone.CenterCropPadSides", follow_center, 0b10},
};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_pads() { return kRules; }

}  // namespace hone::graph
