// Operators that read at indices that are data: Gather, GatherElements, GatherND, ReverseSequence.
#include <cstring>

#include "hone/graph/evaluate.h"
#include "hone/graph/integer_at.h"
#include "hone/graph/ops/indices.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

// Checks that known places, such as positions in a table, are there. They are tuples of one index
// for each of these extents. Where sizes vary, nodes that Hone adds may read elements that no run
// uses.
Status check_known_places(const InferContext& c, const Shape& extents) {
  HONE_RETURN_IF_ERROR(check_indices(c, 1));
  const Tensor* places = c.constant(1);
  if (places == nullptr || (c.constant(0) == nullptr && c.follows_sizes())) return ok_status();
  for (int64_t i = 0; i < places->size(); ++i) {
    const int64_t place = integer_at(*places, i);
    const int64_t extent = extents[static_cast<size_t>(i) % extents.size()];
    if (!normalize_axis(place, extent)) return c.fail("index {} into {} elements", place, extent);
  }
  return ok_status();
}

Status infer_gather(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
  HONE_RETURN_IF_ERROR(check_known_places(c, {c.shape(0)[axis]}));
  Shape shape = c.shape(0);
  if (shape[axis] == 0 && num_elements(c.shape(1)) > 0) return c.fail("indices into no elements");
  const auto at = shape.erase(shape.begin() + static_cast<long>(axis));
  shape.insert(at, c.shape(1).begin(), c.shape(1).end());
  return c.set(0, c.dtype(0), std::move(shape));
}

Result<std::vector<Tensor>> fold_gather(const Graph& graph, const Node& node) {
  const InferContext c(const_cast<Graph&>(graph), node);
  const Tensor& from = *c.constant(0);
  const Tensor& indices = *c.constant(1);
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
  const int64_t extent = from.shape()[axis];
  const int64_t inner =
      num_elements(Shape(from.shape().begin() + static_cast<long>(axis) + 1, from.shape().end()));
  const int64_t outer = from.size() / (extent * inner);
  const auto row = static_cast<size_t>(inner * dtype_bytes(from.dtype()));
  Tensor to(from.dtype(), graph.value(node.outputs[0]).shape);
  auto* target = static_cast<char*>(to.data());
  HONE_RETURN_IF_ERROR(check_known_places(c, {extent}));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < indices.size(); ++i) {
      const auto index = normalize_axis(integer_at(indices, i), extent);
      std::memcpy(
          target,
          static_cast<const char*>(from.data()) + static_cast<size_t>(o * extent + *index) * row,
          row);
      target += row;
    }
  }
  return std::vector<Tensor>{std::move(to)};
}

// Copies data[from..., inner...] to result[row..., inner...]. The last coordinates of `from` may be
// places that depend on data; on CPUs, ir/passes/hoist_places.h moves them out of the loops.
std::vector<ir::Stmt> copy_row(EmitContext& c, const std::vector<compute::Axis>& inner,
                               const std::vector<Expr>& row, std::vector<Expr> from) {
  std::vector<Expr> to = row;
  for (const Expr& i : compute::variables(inner)) {
    to.push_back(i);
    from.push_back(i);
  }
  return {loops_over(inner, {c.store(0, to, c.read(0, "data", from))})};
}

// result[outer..., indices..., inner...] = data[outer..., index, inner...]
void emit_gather(EmitContext& c) {
  const Shape& data = c.input(0).shape;
  const Shape& result = c.result().shape;
  const size_t axis = axis_of(c, 0);
  const size_t rows = axis + c.input(1).shape.size();
  const std::vector<compute::Axis> inner = axes_of(result, rows, result.size());
  c.body("gather", axes_of(result, 0, rows), [&](const std::vector<Expr>& row) {
    const Expr index =
        c.read(1, "indices", std::vector<Expr>(row.begin() + static_cast<long>(axis), row.end()));
    std::vector<Expr> from(row.begin(), row.begin() + static_cast<long>(axis));
    from.push_back(place_of(index, data[axis]));
    return copy_row(c, inner, row, std::move(from));
  });
}

Status infer_gather_elements(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const size_t axis, axis_attribute(c, 0));
  HONE_RETURN_IF_ERROR(check_known_places(c, {c.shape(0)[axis]}));
  bool fits = c.rank(1) == c.rank(0);
  for (size_t d = 0; fits && d < c.shape(0).size(); ++d)
    fits = d == axis ? c.shape(0)[d] > 0 : c.shape(1)[d] <= c.shape(0)[d];
  if (!fits && num_elements(c.shape(1)) > 0) {
    return c.fail("indices of shape {} for data of shape {}", to_string(c.shape(1)),
                  to_string(c.shape(0)));
  }
  return c.set(0, c.dtype(0), c.shape(1));
}

void emit_gather_elements(EmitContext& c) {
  const size_t axis = axis_of(c, 0);
  element_body(c, "gather_elements", [&](const std::vector<Expr>& index) {
    std::vector<Expr> from = index;
    from[axis] = place_of(c.read(1, "indices", index), c.input(0).shape[axis]);
    return c.read(0, "data", from);
  });
}

Status infer_gather_nd(InferContext& c) {
  const int64_t batch = c.attributes().integer("batch_dims", 0);
  HONE_RETURN_IF_ERROR(check_indices(c, 1));
  const Shape& data = c.shape(0);
  const Shape& indices = c.shape(1);
  bool fits =
      !indices.empty() && !data.empty() && batch >= 0 && batch < std::min(c.rank(0), c.rank(1));
  for (int64_t d = 0; fits && d < batch; ++d)
    fits = data[static_cast<size_t>(d)] == indices[static_cast<size_t>(d)];
  if (!fits || indices.back() < 1 || batch + indices.back() > c.rank(0)) {
    return c.fail("indices of shape {} for data of shape {} with batch_dims {}", to_string(indices),
                  to_string(data), batch);
  }
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + indices.back(), data.end());
  if (num_elements(data) == 0 && num_elements(shape) > 0) return c.fail("indices into no elements");
  HONE_RETURN_IF_ERROR(
      check_known_places(c, Shape(data.begin() + batch, data.begin() + batch + indices.back())));
  return c.set(0, c.dtype(0), std::move(shape));
}

// result[batch..., more..., inner...] = data[batch..., index..., inner...]
void emit_gather_nd(EmitContext& c) {
  const auto batch = static_cast<size_t>(c.node().attributes.integer("batch_dims", 0));
  const Shape& data = c.input(0).shape;
  const Shape& result = c.result().shape;
  const size_t rows = c.input(1).shape.size() - 1;
  const auto count = static_cast<size_t>(c.input(1).shape.back());
  const std::vector<compute::Axis> inner = axes_of(result, rows, result.size());
  c.body("gather_nd", axes_of(result, 0, rows), [&](const std::vector<Expr>& row) {
    std::vector<Expr> from(row.begin(), row.begin() + static_cast<long>(batch));
    for (size_t k = 0; k < count; ++k) {
      std::vector<Expr> at = row;
      at.push_back(ir::constant(static_cast<int64_t>(k)));
      from.push_back(place_of(c.read(1, "indices", at), data[batch + k]));
    }
    return copy_row(c, inner, row, std::move(from));
  });
}

Status infer_reverse_sequence(InferContext& c) {
  const int64_t batch = c.attributes().integer("batch_axis", 1);
  const int64_t time = c.attributes().integer("time_axis", 0);
  if (c.rank(0) < 2 || batch < 0 || batch > 1 || time != 1 - batch)
    return c.fail("batch_axis {} and time_axis {} for data of shape {}", batch, time,
                  to_string(c.shape(0)));
  HONE_RETURN_IF_ERROR(check_indices(c, 1));
  if (c.shape(1) != Shape{c.shape(0)[static_cast<size_t>(batch)]})
    return c.fail("lengths of shape {} for data of shape {}", to_string(c.shape(1)),
                  to_string(c.shape(0)));
  return c.set(0, c.dtype(0), c.shape(0));
}

void emit_reverse_sequence(EmitContext& c) {
  const auto batch = static_cast<size_t>(c.node().attributes.integer("batch_axis", 1));
  const auto time = 1 - batch;
  element_body(c, "reverse_sequence", [&](const std::vector<Expr>& index) {
    const Expr given = ir::cast(DType::kI64, c.read(1, "lengths", {index[batch]}));
    const Expr length = ir::min(given, ir::constant(c.input(0).shape[time]));
    std::vector<Expr> from = index;
    from[time] = ir::select(ir::less(index[time], length), length - index[time] - 1, index[time]);
    return c.read(0, "data", from);
  });
}

Op gather(std::string_view name, int since, std::string_view attributes,
          Status (*infer)(InferContext&), void (*emit)(EmitContext&)) {
  return {.name = name,
          .since = since,
          .min_inputs = 2,
          .max_inputs = 2,
          .attributes = attributes,
          .infer = infer,
          .fold = evaluate_node,
          .emit = emit};
}

}  // namespace

std::span<const Op> gather_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list = {
        gather("Gather", 1, "axis:i", infer_gather, emit_gather),
        gather("GatherElements", 11, "axis:i", infer_gather_elements, emit_gather_elements),
        gather("GatherND", 11, "batch_dims:i", infer_gather_nd, emit_gather_nd),
        gather("ReverseSequence", 10, "batch_axis:i time_axis:i", infer_reverse_sequence,
               emit_reverse_sequence),
    };
    list[0].fold = fold_gather;
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
