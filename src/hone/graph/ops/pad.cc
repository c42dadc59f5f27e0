// Pad and CenterCropPad: a window of a value with something around it.
#include "hone/graph/ops/pad.h"

#include <algorithm>

#include "hone/graph/evaluate.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {

Result<std::vector<size_t>> named_dims(const InferContext& c,
                                       const std::optional<std::vector<int64_t>>& axes) {
  std::vector<size_t> dims;
  if (!axes) {
    for (size_t d = 0; d < c.shape(0).size(); ++d) dims.push_back(d);
    return dims;
  }
  for (const int64_t given : *axes) {
    const auto axis = normalize_axis(given, c.rank(0));
    if (!axis) return c.fail("axis {} of a value of shape {}", given, to_string(c.shape(0)));
    dims.push_back(static_cast<size_t>(*axis));
  }
  return dims;
}

Result<std::vector<size_t>> named_dims(const InferContext& c) {
  const auto* axes = c.attributes().find<std::vector<int64_t>>("axes");
  return named_dims(c, axes ? std::optional(*axes) : std::nullopt);
}

Result<std::vector<size_t>> padded_dims(const InferContext& c) {
  if (!c.has(3)) return named_dims(c, std::nullopt);
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, c.integers(3, "axes"));
  return named_dims(c, axes);
}

Result<Pads> pads_of(const InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto pads, c.integers_or_attribute(1, "pads"));
  HONE_ASSIGN_OR_RETURN(const std::vector<size_t> dims, padded_dims(c));
  if (!pads || pads->size() != 2 * dims.size())
    return c.fail("pads, expected {} values", 2 * dims.size());
  const auto rank = static_cast<size_t>(c.rank(0));
  Pads found{Shape(rank, 0), Shape(rank, 0)};
  for (size_t i = 0; i < dims.size(); ++i) {
    found.low[dims[i]] = (*pads)[i];
    found.high[dims[i]] = (*pads)[dims.size() + i];
  }
  for (const int64_t p : *pads) {
    if (p < -(1 << 24) || p > 1 << 24) return c.fail("pads are {}", to_string(*pads));
  }
  return found;
}

namespace {

using ir::Expr;

// The elements that negative padding leaves; positive padding then repeats only these.
struct Kept {
  Kept(int64_t n, int64_t low, int64_t high)
      : first(std::max<int64_t>(0, -low)), count(n - first - std::max<int64_t>(0, -high)) {}
  int64_t first, count;
};

Status infer_pad(InferContext& c) {
  const std::string mode = c.attributes().text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return c.unsupported("mode '{}'", mode);
  if (c.has(2) && (num_elements(c.shape(2)) != 1 || c.dtype(2) != c.dtype(0))) {
    return c.fail("a fill value of shape {}", to_string(c.shape(2)));
  }
  HONE_ASSIGN_OR_RETURN(const auto pads, pads_of(c));
  Shape shape = c.shape(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool grows = pads.low[d] > 0 || pads.high[d] > 0;
    if (mode != "constant" && Kept(shape[d], pads.low[d], pads.high[d]).count <= 0 && grows)
      return c.fail("mode '{}' of {} without elements", mode, to_string(c.shape(0)));
    shape[d] += pads.low[d] + pads.high[d];
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

// If there is no data to pad, the result has the fill value only.
Status expand_pad(ExpandContext& c) {
  if (num_elements(c.shape(0)) > 0) {
    c.decline();
    return ok_status();
  }
  HONE_RETURN_IF_ERROR(infer_pad(c));
  HONE_ASSIGN_OR_RETURN(const auto pads, pads_of(c));
  Shape shape = c.shape(0);
  for (size_t d = 0; d < shape.size(); ++d) shape[d] += pads.low[d] + pads.high[d];
  const ValueId fill =
      c.has(2) ? c.reshape(c.input(2), {})
               : c.scalar(c.dtype(0), static_cast<double>(c.attributes().number("value", 0)));
  c.result(0, c.add("Expand", {fill, c.integers(shape)}));
  return ok_status();
}

// Returns which of n elements is at a position up to `low` before or `high` after them.
Expr mirrored(const std::string& mode, const Expr& place, int64_t n, int64_t low, int64_t high) {
  if (low <= 0 && high <= 0) return place;
  if (mode == "edge" || n == 1)
    return ir::min(ir::max(place, ir::constant(0)), ir::constant(n - 1));
  if (mode == "wrap") return ir::floormod(place, n);
  // reflect: once at each end, or again and again where the padding is longer than the data
  const auto absolute = [](const Expr& e) { return ir::max(e, ir::constant(0) - e); };
  if (low < n && high < n) {
    return ir::constant(n - 1) - absolute(ir::constant(n - 1) - absolute(place));
  }
  const Expr phase = ir::floormod(place, 2 * (n - 1));
  return ir::min(phase, ir::constant(2 * (n - 1)) - phase);
}

void emit_mirrored(EmitContext& c, const std::string& mode, const Shape& low, const Shape& high) {
  element_body(c, {"pad", "pad_" + mode}, [&](const std::vector<Expr>& index) {
    std::vector<Expr> from;
    for (size_t d = 0; d < index.size(); ++d) {
      const Kept kept(c.input(0).shape[d], low[d], high[d]);
      const Expr place = index[d] - std::max<int64_t>(0, low[d]);
      from.push_back(mirrored(mode, place, kept.count, low[d], high[d]) + kept.first);
    }
    return c.read(0, "data", from);
  });
}

void emit_pad(EmitContext& c) {
  const auto pads = pads_of(InferContext(const_cast<Graph&>(c.graph()), c.node()));
  HONE_ASSERT(pads.ok(), "the shape rule has checked the pads");
  const std::string mode = c.node().attributes.text("mode", "constant");
  if (mode != "constant") return emit_mirrored(c, mode, pads->low, pads->high);
  c.pointwise("pad", [&](const Point& point) {
    std::vector<Expr> index;
    Expr inside;
    const auto require = [&](const Expr& condition) {
      inside = inside ? ir::logical_and(inside, condition) : condition;
    };
    for (size_t d = 0; d < point.index.size(); ++d) {
      index.push_back(point.index[d] - pads->low[d]);
      if (pads->low[d] > 0) require(ir::less_equal(ir::constant(0), index[d]));
      if (pads->high[d] > 0) require(ir::less(index[d], ir::constant(c.input(0).shape[d])));
    }
    const Expr element = c.read(0, "data", index);
    if (!inside) return element;
    const double attribute = c.node().attributes.number("value", 0);
    const bool given = c.node().has_input(2);
    Expr fill = literal(element->type, attribute);
    if (given) {
      const auto& value = c.input(2).constant;
      fill = value ? literal(*value, 0)
                   : c.read(2, "fill", std::vector<Expr>(c.input(2).shape.size(), ir::constant(0)));
    }
    return ir::select(inside, element, fill);
  });
}

bool pad_non_negative(const Graph& graph, const Node& node, const std::vector<bool>& known) {
  if (!known[static_cast<size_t>(node.inputs[0])]) return false;
  if (!node.has_input(2)) return node.attributes.number("value", 0) >= 0;
  const auto& value = graph.value(node.inputs[2]).constant;
  return value && value->at(0) >= 0;
}

// Returns the numbers of CenterCropPad in the order of a Pad: all low ones, then all high ones.
Result<std::vector<int64_t>> pads_to_center(const InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto shape, c.integers(1, "the shape"));
  HONE_ASSIGN_OR_RETURN(const std::vector<size_t> dims, named_dims(c));
  if (shape.size() != dims.size())
    return c.fail("a shape of {} extents for {} axes", shape.size(), dims.size());
  std::vector<int64_t> pads(2 * c.shape(0).size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (shape[i] < 0) return c.fail("the shape is {}", to_string(shape));
    // For an odd number of elements the larger half is at the end.
    const int64_t all = shape[i] - c.shape(0)[dims[i]];
    pads[dims[i]] = all / 2;
    pads[c.shape(0).size() + dims[i]] = all - all / 2;
  }
  return pads;
}

Status expand_center_crop_pad(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, pads_to_center(c));
  c.result(0, c.add("Pad", {c.input(0), c.integers(pads)}));
  return ok_status();
}

Status infer_center_crop_pad(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, pads_to_center(c));
  Shape shape = c.shape(0);
  for (size_t d = 0; d < shape.size(); ++d) shape[d] += pads[d] + pads[shape.size() + d];
  return c.set(0, c.dtype(0), std::move(shape));
}

Op pad(int since, int until, int min_inputs, int max_inputs, std::string_view attributes) {
  return {.name = "Pad",
          .since = since,
          .until = until,
          .min_inputs = min_inputs,
          .max_inputs = max_inputs,
          .layout = Layout::kFollow,
          .attributes = attributes,
          .infer = infer_pad,
          .expand = expand_pad,
          .fold = evaluate_node,
          .emit = emit_pad,
          .non_negative = pad_non_negative};
}

}  // namespace

std::span<const Op> pad_ops() {
  static const Op ops[] = {
      pad(1, 10, 1, 1, "mode:s pads:is value:f"),
      pad(11, kMaxOpset, 2, 4, "mode:s"),
      {.name = "CenterCropPad",
       .since = 18,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "axes:is",
       .expand = expand_center_crop_pad},
      // These stand for nodes whose pads differ from run to run (graph/widen_nodes.h).
      {.name = "hone.PadSides",
       .min_inputs = 2,
       .max_inputs = 4,
       .attributes = "mode:s",
       .infer = infer_pad},
      {.name = "hone.CenterCropPadSides",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "axes:is",
       .infer = infer_center_crop_pad},
  };
  return ops;
}

}  // namespace hone::graph
