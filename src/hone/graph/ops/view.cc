// Operators that only say the shape anew, or the order of the dimensions: no element moves.
#include <algorithm>
#include <cstring>

#include "hone/graph/extents.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

Status infer_identity(InferContext& c) { return c.set(0, c.dtype(0), c.shape(0)); }

// Returns whether elements are dropped: in training, at a ratio that is not 0.
Result<bool> drops(const ExpandContext& c) {
  if (!c.has(2)) return false;
  if (c.has(1) && (!is_float(c.dtype(1)) || num_elements(c.shape(1)) != 1))
    return c.fail("a ratio {} {}, expected one float", dtype_name(c.dtype(1)),
                  to_string(c.shape(1)));
  if (c.dtype(2) != DType::kBool || num_elements(c.shape(2)) != 1)
    return c.fail("training_mode {} {}, expected one bool", dtype_name(c.dtype(2)),
                  to_string(c.shape(2)));
  const Tensor* known = c.has(1) ? c.constant_of(c.input(1)) : nullptr;
  if (known != nullptr && known->at(0) == 0) return false;
  HONE_ASSIGN_OR_RETURN(const Tensor* training, c.required(2, "training_mode"));
  if (training->at(0) == 0 || !c.has(1)) return training->at(0) != 0;
  HONE_ASSIGN_OR_RETURN(const Tensor* ratio, c.required(1, "the ratio"));
  return ratio->at(0) != 0;
}

// Outside training every element is kept.
Status expand_dropout(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const bool some_drop, drops(c));
  if (some_drop) {
    const Tensor* ratio = c.has(1) ? c.constant_of(c.input(1)) : nullptr;
    return c.unsupported(
        "training mode, which drops elements at random with a ratio of {}: expected training_mode "
        "false or a ratio of 0, as an export for inference has it",
        ratio != nullptr ? ratio->at(0) : 0.5);
  }
  c.result(0, c.input(0));
  if (c.wants(1)) {
    HONE_ASSIGN_OR_RETURN(Tensor mask, c.new_constant(DType::kBool, c.shape(0)));
    std::memset(mask.data(), 1, static_cast<size_t>(mask.bytes()));
    // Before opset 10 the mask has the type of the data.
    const DType type = c.opset() < 10 ? c.dtype(0) : DType::kBool;
    const ValueId kept = c.cast(c.constant(std::move(mask)), type);
    const ValueId extents = c.extents_of(c.input(0));
    c.result(1, extents == kNoValue ? kept : with_extents(c, kept, extents));
  }
  return ok_status();
}

Status infer_flatten(InferContext& c) {
  const Shape& x = c.shape(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = c.attributes().integer("axis", 1);
  if (axis < -rank || axis > rank)
    return c.fail("axis {} of a value of shape {}", axis, to_string(x));
  if (axis < 0) axis += rank;
  const Shape head(x.begin(), x.begin() + axis), tail(x.begin() + axis, x.end());
  return c.set(0, c.dtype(0), {num_elements(head), num_elements(tail)});
}

Status infer_reshape(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Shape shape, c.integers(1, "the shape"));
  const Shape& x = c.shape(0);
  const bool fits = std::ranges::all_of(shape, [](int64_t extent) { return extent > 0; }) &&
                    is_valid(shape) && num_elements(shape) == num_elements(x);
  if (const auto& batch = c.rebatch(); batch && !fits && !x.empty() && !shape.empty() &&
                                       x[0] == batch->to && shape[0] == batch->from)
    shape[0] = batch->to;
  const bool keep_zero = c.attributes().integer("allowzero", 0) != 0;
  int64_t known = 1;
  int64_t* open = nullptr;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !keep_zero) {
      if (d >= x.size())
        return c.fail("shape {} copies a dimension that {} does not have", to_string(shape),
                      to_string(x));
      shape[d] = x[d];
    }
    if (shape[d] == -1 && open == nullptr) {
      open = &shape[d];
      continue;
    }
    if (shape[d] < 0) return c.fail("the shape is {}", to_string(shape));
    if (__builtin_mul_overflow(known, shape[d], &known))
      return c.fail("the shape is {}", to_string(shape));
  }
  const int64_t all = num_elements(x);
  // A batch that was merged with other dimensions becomes one again.
  if (const auto& batch = c.rebatch(); batch && open == nullptr && known != all && !shape.empty() &&
                                       shape[0] == batch->from && batch->from > 0 &&
                                       batch->to > 0 && all % batch->to == 0 &&
                                       known / batch->from == all / batch->to) {
    shape[0] = batch->to;
    known = all;
  }
  if (open != nullptr) {
    if (known == 0) return c.fail("cannot reshape {} to {}", to_string(x), to_string(shape));
    *open = all / known;
  }
  if ((open != nullptr ? known * *open : known) != all) {
    return c.fail("cannot reshape {} to {}", to_string(x), to_string(shape));
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

Status infer_squeeze(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(1, "axes"));
  const Shape& x = c.shape(0);
  std::vector<bool> drop(x.size(), false);
  if (!axes) {
    for (size_t d = 0; d < x.size(); ++d) drop[d] = x[d] == 1;
  } else {
    for (const int64_t given : *axes) {
      const auto axis = normalize_axis(given, static_cast<int64_t>(x.size()));
      if (!axis || x[static_cast<size_t>(*axis)] != 1)
        return c.fail("axis {} of a value of shape {}", given, to_string(x));
      drop[static_cast<size_t>(*axis)] = true;
    }
  }
  Shape shape;
  for (size_t d = 0; d < x.size(); ++d) {
    if (!drop[d]) shape.push_back(x[d]);
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

Status infer_unsqueeze(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(1, "axes"));
  if (!axes) return c.fail("axes are missing");
  const Shape& x = c.shape(0);
  const size_t rank = x.size() + axes->size();
  Shape shape(rank, -1);
  for (const int64_t given : *axes) {
    const auto axis = normalize_axis(given, static_cast<int64_t>(rank));
    if (!axis || shape[static_cast<size_t>(*axis)] == 1)
      return c.fail("axes {} for a value of shape {}", to_string(*axes), to_string(x));
    shape[static_cast<size_t>(*axis)] = 1;
  }
  size_t next = 0;
  for (int64_t& extent : shape) {
    if (extent < 0) extent = x[next++];
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

Result<std::vector<Tensor>> fold_view(const Graph& graph, const Node& node) {
  return std::vector<Tensor>{
      graph.value(node.inputs[0]).constant->reshaped(graph.value(node.outputs[0]).shape)};
}

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

Op view(std::string_view name, Status (*infer)(InferContext&), int since, int until, int min_inputs,
        int max_inputs, std::string_view attributes) {
  return {.name = name,
          .since = since,
          .until = until,
          .min_inputs = min_inputs,
          .max_inputs = max_inputs,
          .kind = Kind::kView,
          .attributes = attributes,
          .infer = infer,
          .fold = fold_view,
          .non_negative = like_operand};
}

}  // namespace

std::span<const Op> view_ops() {
  static const Op ops[] = {
      view("Identity", infer_identity, 1, kMaxOpset, 1, 1, {}),
      {.name = "Dropout",
       .until = 11,
       .max_outputs = 2,
       .attributes = "ratio:f",
       .expand = expand_dropout},
      {.name = "Dropout",
       .since = 12,
       .max_inputs = 3,
       .max_outputs = 2,
       .attributes = "seed:i",
       .expand = expand_dropout},
      view("Flatten", infer_flatten, 1, kMaxOpset, 1, 1, "axis:i"),
      view("Reshape", infer_reshape, 5, kMaxOpset, 2, 2, "allowzero:i"),
      view("Squeeze", infer_squeeze, 1, 12, 1, 1, "axes:is"),
      view("Squeeze", infer_squeeze, 13, kMaxOpset, 1, 2, {}),
      view("Unsqueeze", infer_unsqueeze, 1, 12, 1, 1, "axes:is"),
      view("Unsqueeze", infer_unsqueeze, 13, kMaxOpset, 2, 2, {}),
  };
  return ops;
}

}  // namespace hone::graph
