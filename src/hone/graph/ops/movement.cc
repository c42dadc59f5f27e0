// Operators that move elements: Transpose, Concat, Slice.
#include "hone/graph/ops/movement.h"

#include <algorithm>
#include <cstring>

#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

Result<Shape> permutation(const InferContext& c) {
  const auto rank = static_cast<size_t>(c.rank(0));
  Shape perm = c.attributes().integers("perm");
  if (perm.empty()) {
    for (size_t d = rank; d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  }
  Shape sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == rank;
  for (size_t d = 0; valid && d < rank; ++d) valid = sorted[d] == static_cast<int64_t>(d);
  if (!valid)
    return c.fail("perm {} for a value of shape {}", to_string(perm), to_string(c.shape(0)));
  return perm;
}

Status infer_transpose(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const Shape perm, permutation(c));
  Shape shape;
  for (const int64_t d : perm) shape.push_back(c.shape(0)[static_cast<size_t>(d)]);
  return c.set(0, c.dtype(0), std::move(shape));
}

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// result[i] = from[offset + sum of i[d] * strides[d]]
Tensor strided_copy(const Tensor& from, const Shape& shape, const Shape& strides, int64_t offset) {
  Tensor to(from.dtype(), shape);
  const auto width = static_cast<size_t>(dtype_bytes(from.dtype()));
  const auto* source = static_cast<const char*>(from.data());
  auto* target = static_cast<char*>(to.data());
  Shape index(shape.size(), 0);
  int64_t at = offset;
  for (int64_t flat = 0; flat < to.size(); ++flat, target += width) {
    std::memcpy(target, source + static_cast<size_t>(at) * width, width);
    for (size_t d = shape.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d]) break;
      at -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return to;
}

Result<std::vector<Tensor>> fold_transpose(const Graph& graph, const Node& node) {
  const Tensor& from = *graph.value(node.inputs[0]).constant;
  const Shape from_strides = dense_strides(from.shape());
  Shape perm = node.attributes.integers("perm");
  if (perm.empty()) {
    for (size_t d = from.shape().size(); d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  }
  Shape strides;
  for (const int64_t d : perm) strides.push_back(from_strides[static_cast<size_t>(d)]);
  return std::vector<Tensor>{strided_copy(from, graph.value(node.outputs[0]).shape, strides, 0)};
}

Status infer_concat(InferContext& c) {
  if (!c.attributes().has("axis")) return c.fail("the axis is missing");
  const auto axis = normalize_axis(c.attributes().integer("axis", 0), c.rank(0));
  if (!axis)
    return c.fail("axis {} of a value of shape {}", c.attributes().integer("axis", 0),
                  to_string(c.shape(0)));
  Shape shape = c.shape(0);
  const auto a = static_cast<size_t>(*axis);
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
    Shape other = c.shape(i);
    const bool fits = other.size() == shape.size() && c.dtype(i) == c.dtype(0);
    const int64_t extent = fits ? other[a] : 0;
    if (fits) other[a] = shape[a];
    if (!fits || other != shape) {
      return c.fail("operand {} of type {} and shape {} does not fit {} {}", i,
                    dtype_name(c.dtype(i)), to_string(c.shape(i)), dtype_name(c.dtype(0)),
                    to_string(c.shape(0)));
    }
    shape[a] += extent;
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

// Operands without elements are left out.
Status expand_concat(ExpandContext& c) {
  HONE_RETURN_IF_ERROR(infer_concat(c));
  std::vector<ValueId> kept;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (num_elements(c.shape(i)) > 0) kept.push_back(c.input(i));
  }
  if (kept.empty() || kept.size() == c.num_inputs()) {
    c.decline();
  } else {
    c.result(0, c.add("Concat", kept, {{"axis", c.attributes().integer("axis", 0)}}));
  }
  return ok_status();
}

Result<std::vector<Tensor>> fold_concat(const Graph& graph, const Node& node) {
  const Value& result = graph.value(node.outputs[0]);
  const auto axis = static_cast<size_t>(*normalize_axis(node.attributes.integer("axis", 0),
                                                        static_cast<int64_t>(result.shape.size())));
  const int64_t rows =
      num_elements(Shape(result.shape.begin(), result.shape.begin() + static_cast<long>(axis)));
  Tensor to(result.dtype, result.shape);
  auto* target = static_cast<char*>(to.data());
  for (int64_t row = 0; row < rows; ++row) {
    for (const ValueId in : node.inputs) {
      const Tensor& from = *graph.value(in).constant;
      const auto bytes = static_cast<size_t>(from.bytes() / rows);
      std::memcpy(target, static_cast<const char*>(from.data()) + static_cast<size_t>(row) * bytes,
                  bytes);
      target += bytes;
    }
  }
  return std::vector<Tensor>{std::move(to)};
}

bool like_operands(const Graph&, const Node& node, const std::vector<bool>& known) {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId in) { return known[static_cast<size_t>(in)]; });
}

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

template <typename Integers>
Result<SliceRange> slice_of(const Shape& x, const Integers& integers) {
  SliceRange slice{Shape(x.size(), 0), Shape(x.size(), 1), x};
  HONE_ASSIGN_OR_RETURN(const auto starts, integers(1, "starts"));
  HONE_ASSIGN_OR_RETURN(const auto ends, integers(2, "ends"));
  HONE_ASSIGN_OR_RETURN(const auto axes, integers(3, "axes"));
  HONE_ASSIGN_OR_RETURN(const auto steps, integers(4, "steps"));
  if (!starts || !ends || starts->size() != ends->size() ||
      (axes && axes->size() != starts->size()) || (steps && steps->size() != starts->size())) {
    return invalid("starts, ends, axes and steps do not fit together");
  }
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto axis =
        normalize_axis(axes ? (*axes)[i] : static_cast<int64_t>(i), static_cast<int64_t>(x.size()));
    if (!axis)
      return invalid("axis {} of a value of shape {}", axes ? (*axes)[i] : static_cast<int64_t>(i),
                     to_string(x));
    const auto d = static_cast<size_t>(*axis);
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) return invalid("a step of 0");
    if (x[d] == 0) continue;
    const auto place = [&](int64_t at, int64_t low, int64_t high) {
      if (at < 0) at = at < -x[d] ? low : at + x[d];
      return std::clamp(at, low, high);
    };
    const int64_t start =
        step > 0 ? place((*starts)[i], 0, x[d]) : place((*starts)[i], 0, x[d] - 1);
    const int64_t end = step > 0 ? place((*ends)[i], 0, x[d]) : place((*ends)[i], -1, x[d] - 1);
    const int64_t span = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : (step == INT64_MIN ? INT64_MAX : -step);
    slice.start[d] = start;
    slice.step[d] = step;
    slice.shape[d] = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (slice.shape[d] == 1) slice.step[d] = 1;
  }
  return slice;
}

Status infer_slice(InferContext& c) {
  const auto slice = slice_of(
      c.shape(0), [&](size_t i, const char* name) { return c.integers_or_attribute(i, name); });
  if (!slice.ok())
    return slice.status().code() == Code::kInvalid ? c.fail("{}", slice.status().message())
                                                   : slice.status();
  return c.set(0, c.dtype(0), slice->shape);
}

void emit_slice(EmitContext& c) {
  const SliceRange slice = slice_range(c.graph(), c.node());
  c.pointwise("slice", [&](const Point& point) {
    std::vector<Expr> index;
    for (size_t d = 0; d < point.index.size(); ++d)
      index.push_back(point.index[d] * slice.step[d] + slice.start[d]);
    return c.read(0, "data", index);
  });
}

Result<std::vector<Tensor>> fold_slice(const Graph& graph, const Node& node) {
  const Tensor& from = *graph.value(node.inputs[0]).constant;
  const SliceRange slice = slice_range(graph, node);
  Shape strides = dense_strides(from.shape());
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += slice.start[d] * strides[d];
    strides[d] *= slice.step[d];
  }
  return std::vector<Tensor>{strided_copy(from, slice.shape, strides, offset)};
}

}  // namespace

SliceRange slice_range(const Graph& graph, const Node& node) {
  return slice_range(graph, node, graph.value(node.inputs[0]).shape);
}

SliceRange slice_range(const Graph& graph, const Node& node, const Shape& shape) {
  const InferContext c(const_cast<Graph&>(graph), node);
  auto slice =
      slice_of(shape, [&](size_t i, const char* name) { return c.integers_or_attribute(i, name); });
  HONE_ASSERT(slice.ok(), "the shape rule has checked the slice");
  return std::move(slice).value();
}

std::span<const Op> movement_ops() {
  static const Op ops[] = {
      {.name = "Transpose",
       .kind = Kind::kView,
       .attributes = "perm:is",
       .infer = infer_transpose,
       .fold = fold_transpose,
       .non_negative = like_operand},
      {.name = "Concat",
       .max_inputs = 1 << 16,
       .kind = Kind::kView,
       .layout = Layout::kFollow,
       .attributes = "axis:i",
       .infer = infer_concat,
       .expand = expand_concat,
       .fold = fold_concat,
       .non_negative = like_operands},
      {.name = "Slice",
       .until = 9,
       .layout = Layout::kFollow,
       .attributes = "axes:is ends:is starts:is",
       .infer = infer_slice,
       .fold = fold_slice,
       .emit = emit_slice,
       .non_negative = like_operand},
      {.name = "Slice",
       .since = 10,
       .min_inputs = 3,
       .max_inputs = 5,
       .layout = Layout::kFollow,
       .infer = infer_slice,
       .fold = fold_slice,
       .emit = emit_slice,
       .non_negative = like_operand},
  };
  return ops;
}

}  // namespace hone::graph
