// BatchNormalization (inference) and Softmax.
#include <algorithm>

#include "hone/graph/emit.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status infer_batch_norm(InferContext& c) {
  if (c.attributes().integer("training_mode", 0) != 0) return c.unsupported("training mode");
  if (c.attributes().integer("spatial", 1) != 1) return c.unsupported("spatial 0");
  if (!is_float(c.dtype(0))) return c.unsupported("data of type {}", dtype_name(c.dtype(0)));
  const int64_t channels = c.rank(0) < 2 ? 0 : c.shape(0)[1];
  for (size_t i = 1; i < 5; ++i) {
    if (c.shape(i) != Shape{channels} || c.dtype(i) != c.dtype(0)) {
      return c.fail("operand {} of shape {}, expected [{}]", i, to_string(c.shape(i)), channels);
    }
  }
  return c.set(0, c.dtype(0), c.shape(0));
}

void emit_batch_norm(EmitContext& c) {
  const double epsilon = c.node().attributes.number("epsilon", 1e-5f);
  c.pointwise("batch_norm", [&](const Point& point) {
    const Expr x = c.operand(0, "data", point);
    const std::vector<Expr> channel = {point.index[1]};
    const Expr scale = c.read(1, "scale", channel);
    const Expr bias = c.read(2, "bias", channel);
    const Expr mean = c.read(3, "mean", channel);
    const Expr variance = c.read(4, "variance", channel);
    const Expr deviation = ir::make(ir::Op::kSqrt, {variance + literal(x->type, epsilon)});
    return (x - mean) / deviation * scale + bias;
  });
}

Status infer_softmax(InferContext& c) {
  if (!is_float(c.dtype(0)))
    return c.fail("operand of type {}, expected a float", dtype_name(c.dtype(0)));
  const int64_t axis = c.attributes().integer("axis", c.opset() < 13 ? 1 : -1);
  // Before opset 13 the axis only splits the shape in two and may be its end.
  if (!normalize_axis(axis, c.rank(0)))
    return c.fail("axis {} of a value of shape {}", axis, to_string(c.shape(0)));
  return c.set(0, c.dtype(0), c.shape(0));
}

void emit_softmax(EmitContext& c) {
  const Shape& shape = c.input(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const bool flattens = c.opset() < 13;
  const int64_t axis =
      *normalize_axis(c.node().attributes.integer("axis", flattens ? 1 : -1), rank);
  std::vector<int> dims;
  for (int64_t d = axis; d < (flattens ? rank : axis + 1); ++d) dims.push_back(static_cast<int>(d));
  const auto axes = [&] {
    std::vector<compute::Axis> reduce;
    for (const int d : dims)
      reduce.push_back(compute::make_axis(fmt::format("r{}", d), shape[static_cast<size_t>(d)]));
    return reduce;
  };
  const auto place = [&](const Point& point, const std::vector<Expr>& r) {
    std::vector<Expr> index = point.index;
    for (size_t i = 0; i < dims.size(); ++i) index[static_cast<size_t>(dims[i])] = r[i];
    return index;
  };
  c.reduce(
      Combine::kMax, StageTag("softmax_max", ""), axes(),
      [&](const Point& point, const std::vector<Expr>& r) {
        return c.read(0, "data", place(point, r));
      },
      dims);
  if (c.node().type == "LogSoftmax") {
    c.reduce(
        Combine::kSum, StageTag("softmax_sum", ""), axes(),
        [&](const Point& point, const std::vector<Expr>& r) {
          return ir::make(ir::Op::kExp, {c.read(0, "data", place(point, r)) - c.last(point)});
        },
        dims);
    c.pointwise("log_softmax", [&](const Point& point) {
      const Expr shift = c.last(point, 1) + ir::make(ir::Op::kLog, {c.last(point)});
      return c.read(0, "data", point.index) - shift;
    });
    return;
  }
  c.pointwise(StageTag("softmax_exp", ""), [&](const Point& point) {
    return ir::make(ir::Op::kExp, {c.read(0, "data", point.index) - c.last(point)});
  });
  c.reduce(
      Combine::kSum, StageTag("softmax_sum", ""), axes(),
      [&](const Point& point, const std::vector<Expr>& r) { return c.last_at(place(point, r)); },
      dims);
  c.pointwise("softmax", [&](const Point& point) {
    return c.last(point, 1) * (literal(compute_type(c.result().dtype), 1) / c.last(point));
  });
}

bool always(const Graph&, const Node&, const std::vector<bool>&) { return true; }

}  // namespace

std::span<const Op> normalization_ops() {
  static const Op ops[] = {
      {.name = "BatchNormalization",
       .min_inputs = 5,
       .max_inputs = 5,
       .max_outputs = 1,
       .kind = Kind::kElementwise,
       .layout = Layout::kFollow,
       .attributes = "epsilon:f momentum:f spatial:i training_mode:i",
       .infer = infer_batch_norm,
       .emit = emit_batch_norm},
      {.name = "Softmax",
       .kind = Kind::kReduction,
       .layout = Layout::kFollow,
       .attributes = "axis:i",
       .infer = infer_softmax,
       .emit = emit_softmax,
       .non_negative = always},
      {.name = "LogSoftmax",
       .kind = Kind::kReduction,
       .layout = Layout::kFollow,
       .attributes = "axis:i",
       .infer = infer_softmax,
       .emit = emit_softmax},
  };
  return ops;
}

}  // namespace hone::graph
