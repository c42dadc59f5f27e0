// Rules for shapes that vary, of Slice. Where the numbers of the file say which part it takes, the
// extent of the part and its begin are known for each extent that the operand may have, so that one
// that is cut, min(seq, 128) of them, is found.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>

#include "hone/graph/ops/movement.h"
#include "hone/graph/size_follower.h"

namespace hone::graph {
namespace {

// Along one dimension: where a slice begins at each size.
struct SliceStart {
  int form = kNoForm;  // if it varies
  int64_t number = 0, step = 1;
};

// Returns whether the file has the numbers that say which elements are taken.
bool is_known(const SizeRule& rule) {
  const std::vector<ValueId>& inputs = rule.node.inputs;
  return std::all_of(inputs.begin() + 1, inputs.end(), [&](ValueId id) {
    return id == kNoValue || (rule.c.constant_of(id) != nullptr &&
                              rule.sizes.kind_of_constant(id) == ConstantKind::kFixed);
  });
}

// Returns whether a slice takes the same elements along a dimension at all sizes.
bool is_same_slice(const SizeRule& rule, size_t d) {
  return !rule.sizes.varies(rule.node.inputs[0], d) && is_known(rule);
}

// Returns what is taken where a dimension of the operand has another extent.
SliceRange range_at(const SizeRule& rule, size_t d, int64_t extent) {
  Shape shape = rule.c.shape_of(rule.node.inputs[0]);
  shape[d] = extent;
  return slice_range(rule.sizes.graph(), rule.node, shape);
}

// Returns the form of a number of the slice along a dimension, which counts in units of so many
// extents of the operand. `seen` finds one from a few sizes, which is enough where only the run
// knows what is taken.
std::optional<int> form_of_number(
    const SizeRule& rule, size_t d, int64_t divisor,
    const std::function<std::optional<int>()>& seen,
    const std::function<std::optional<int64_t>(const SliceRange&)>& number) {
  if (!is_known(rule)) return seen();
  return rule.sizes.exact_form(rule.sizes.parts_of(rule.node.inputs[0])[d], divisor, seen,
                               [&](int64_t extent) { return number(range_at(rule, d, extent)); });
}

Result<SliceStart> start_of(SizeRule& rule, const SliceRange& most, size_t d) {
  if (is_same_slice(rule, d)) return SliceStart{kNoForm, most.start[d], most.step[d]};
  const ValueId out = rule.node.outputs[0];
  std::vector<int64_t> largest;
  for (const SizeSymbol& symbol : rule.sizes.graph().varying.symbols) largest.push_back(symbol.max);
  std::vector<SizeSample> samples = {{&largest, most.start[d]}};
  for (const SizeProbe& probe : rule.sizes.probes()) {
    const Node* twin = probe.producer_of_twin(rule.sizes.origin(out));
    if (twin == nullptr || probe.graph.value(twin->inputs[0]).shape[d] == 0) continue;
    const SliceRange range = slice_range(probe.graph, *twin);
    if (range.shape[d] == 0) continue;
    samples.push_back({&probe.symbols, range.start[d]});
    if (range.shape[d] > 1 && range.step[d] != most.step[d])
      return rule.c.unsupported("its step is other at {}", rule.sizes.text_of(probe.symbols));
  }
  const auto form = form_of_number(
      rule, d, 1, [&] { return rule.sizes.form_of(samples); },
      [&](const SliceRange& range) {
        return range.shape[d] == 0 ? std::nullopt : std::optional(range.start[d]);
      });
  if (!form)
    return rule.c.unsupported(
        "where it begins along dimension {} does not follow from the sizes: give a range within "
        "which it does, or one size (--shape)",
        d);
  return SliceStart{*form, most.start[d], most.step[d]};
}

// Returns whether a dimension has all of the operand's elements at all sizes.
bool is_whole(const SizeRule& rule, size_t d) {
  const ValueId x = rule.node.inputs[0], out = rule.node.outputs[0];
  if (rule.c.shape_of(out)[d] != rule.c.shape_of(x)[d]) return false;
  const auto& probes = rule.sizes.probes();
  return std::all_of(probes.begin(), probes.end(), [&](const SizeProbe& probe) {
    const Value* from = probe.twin(rule.sizes.origin(x));
    const Value* to = probe.twin(rule.sizes.origin(out));
    return from == nullptr || to == nullptr || from->shape[d] == to->shape[d];
  });
}

ValueId gathered(SizeRule& rule, const SliceRange& most,
                 const std::vector<std::pair<size_t, SliceStart>>& moving,
                 const ShapeParts& parts) {
  ExpandContext& c = rule.c;
  ValueId y = rule.node.inputs[0];
  for (size_t d = 0; d < most.shape.size(); ++d) {
    const auto at =
        std::find_if(moving.begin(), moving.end(), [&](const auto& one) { return one.first == d; });
    const auto axis = static_cast<int64_t>(d);
    const int64_t count = most.shape[d], step = most.step[d];
    if (at == moving.end()) {
      const int64_t start = most.start[d], last = start + (count - 1) * step;
      const int64_t end = step > 0 ? last + 1 : last > 0 ? last - 1 : -(int64_t{1} << 40);
      if (count != c.shape_of(y)[d] || step != 1) y = c.slice(y, axis, start, end, step);
      continue;
    }
    std::vector<int64_t> steps;
    for (int64_t i = 0; i < count; ++i) steps.push_back(i * step);
    const ValueId places =
        c.binary("Add", c.integers(steps), rule.sizes.size_of(c, at->second.form));
    const ValueId inside = c.binary("Max", places, 0.0);
    const auto part = parts[d].size() == 1 ? std::optional(parts[d][0])
                                           : rule.sizes.seen_part(rule.node.outputs[0], d);
    y = part ? rule.sizes.gathered(c, y, inside, d,
                                   {part->form, rule.sizes.parts_of(rule.node.inputs[0])[d]})
             : c.add("Gather", {y, inside}, {{"axis", axis}});
  }
  return y;
}

// A slice that begins elsewhere at other sizes is gathered.
Status follow_slice(SizeRule& rule) {
  ValueId& x = rule.node.inputs[0];
  const ValueId out = rule.node.outputs[0];
  const SliceRange most = slice_range(rule.sizes.graph(), rule.node);
  const ShapeParts from = rule.sizes.parts_of(x);
  ShapeParts parts;
  std::vector<std::pair<size_t, SliceStart>> moving;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool whole = is_whole(rule, d);
    HONE_ASSIGN_OR_RETURN(const SliceStart start, start_of(rule, most, d));
    if (!whole || most.step[d] != 1 || start.form != kNoForm)
      HONE_RETURN_IF_ERROR(make_contiguous(rule, x, d));
    if (start.form != kNoForm) moving.emplace_back(d, start);
    if (whole) {
      parts.push_back(rule.sizes.parts_of(x)[d]);
      continue;
    }
    if (is_same_slice(rule, d)) {
      parts.push_back({{kNoForm, most.shape[d]}});
      continue;
    }
    const int64_t step = std::max(most.step[d], -std::numeric_limits<int64_t>::max());
    // To the end, which may be that of an extent that was rounded up.
    const auto seen = [&] {
      const bool is_forward = start.form == kNoForm && step > 0;
      const auto part = is_forward ? rule.sizes.divided_part(out, d, rule.sizes.parts_of(x)[d],
                                                             {step - 1 - start.number}, step)
                                   : rule.sizes.seen_part(out, d);
      return part ? std::optional(part->form) : std::nullopt;
    };
    const auto count = form_of_number(rule, d, std::abs(step), seen, [&](const SliceRange& range) {
      return std::optional(range.shape[d]);
    });
    if (!count) return does_not_follow(rule, out, d);
    parts.push_back({{*count, most.shape[d]}});
  }
  if (!moving.empty()) {
    rule.c.result(0, gathered(rule, most, moving, parts));
    rule.replaced = true;
  }
  rule.sizes.set_parts(out, std::move(parts));
  return ok_status();
}

constexpr SizeRuleOf kRules[] = {{"Slice", follow_slice, 0b11110}};

}  // namespace

std::span<const SizeRuleOf> size_rules_of_slices() { return kRules; }

}  // namespace hone::graph
