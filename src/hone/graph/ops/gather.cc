// Operators whose indices are data: Gather.
#include <cstring>

#include "hone/graph/emit.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status infer_gather(InferContext& c) {
  const auto axis = normalize_axis(c.attributes().integer("axis", 0), c.rank(0));
  if (!axis)
    return c.fail("axis {} of a value of shape {}", c.attributes().integer("axis", 0),
                  to_string(c.shape(0)));
  if (c.dtype(1) != DType::kI64 && c.dtype(1) != DType::kI32)
    return c.fail("indices of type {}", dtype_name(c.dtype(1)));
  Shape shape = c.shape(0);
  const auto at = shape.erase(shape.begin() + *axis);
  shape.insert(at, c.shape(1).begin(), c.shape(1).end());
  return c.set(0, c.dtype(0), std::move(shape));
}

Result<std::vector<Tensor>> fold_gather(const Graph& graph, const Node& node) {
  const InferContext c(const_cast<Graph&>(graph), node);
  const Tensor& from = *c.constant(0);
  const Tensor& indices = *c.constant(1);
  const auto axis =
      static_cast<size_t>(*normalize_axis(node.attributes.integer("axis", 0), c.rank(0)));
  const int64_t extent = from.shape()[axis];
  const int64_t inner =
      num_elements(Shape(from.shape().begin() + static_cast<long>(axis) + 1, from.shape().end()));
  const int64_t outer = from.size() / (extent * inner);
  const auto row = static_cast<size_t>(inner * dtype_bytes(from.dtype()));
  Tensor to(from.dtype(), graph.value(node.outputs[0]).shape);
  auto* target = static_cast<char*>(to.data());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < indices.size(); ++i) {
      const auto index = normalize_axis(static_cast<int64_t>(indices.at(i)), extent);
      if (!index) return c.fail("index {} into {} elements", indices.at(i), extent);
      std::memcpy(
          target,
          static_cast<const char*>(from.data()) + static_cast<size_t>(o * extent + *index) * row,
          row);
      target += row;
    }
  }
  return std::vector<Tensor>{std::move(to)};
}

// An index counts from the end if it is negative; one outside ends at the nearest element.
Expr place_of(const Expr& given, int64_t extent) {
  const Expr index = ir::cast(DType::kI64, given);
  const Expr positive = ir::select(ir::less(index, ir::constant(0)), index + extent, index);
  return ir::min(ir::max(positive, ir::constant(0)), ir::constant(extent - 1));
}

// result[outer..., indices..., inner...] = data[outer..., index, inner...]
void emit_gather(EmitContext& c) {
  const Shape& data = c.input(0).shape;
  const Shape& result = c.result().shape;
  const size_t axis = static_cast<size_t>(
      *normalize_axis(c.node().attributes.integer("axis", 0), static_cast<int64_t>(data.size())));
  const size_t count = c.input(1).shape.size();
  std::vector<compute::Axis> rows, inner;
  for (size_t d = 0; d < result.size(); ++d) {
    (d < axis + count ? rows : inner)
        .push_back(compute::make_axis(fmt::format("i{}", d), result[d]));
  }
  c.body("gather", rows, [&](const std::vector<Expr>& row) {
    const Expr index =
        c.read(1, "indices", std::vector<Expr>(row.begin() + static_cast<long>(axis), row.end()));
    std::vector<Expr> to = row, from(row.begin(), row.begin() + static_cast<long>(axis));
    from.push_back(place_of(index, data[axis]));
    for (const Expr& i : compute::variables(inner)) {
      to.push_back(i);
      from.push_back(i);
    }
    return std::vector{loops_over(inner, {c.store(0, to, c.read(0, "data", from))})};
  });
}

}  // namespace

std::span<const Op> gather_ops() {
  static const Op ops[] = {
      {.name = "Gather",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = "axis:i",
       .infer = infer_gather,
       .fold = fold_gather,
       .emit = emit_gather},
  };
  return ops;
}

}  // namespace hone::graph
