// Normalisation along rows: LayerNormalization, RMSNormalization, and what is built on them.
#include <cmath>

#include "hone/graph/expand.h"
#include "hone/graph/ops/pointwise.h"
#include "hone/graph/ops/type_code.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status infer_layer_norm(InferContext& c) {
  const Shape& x = c.shape(0);
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  const int64_t given = c.attributes().integer("axis", -1);
  if (!normalize_axis(given, c.rank(0)))
    return c.fail("axis {} of a value of shape {}", given, to_string(x));
  for (size_t i = 1; i < c.num_inputs(); ++i) {
    if (c.has(i) && c.dtype(i) != c.dtype(0) && c.node().type == "LayerNormalization")
      return c.fail("operand {} of type {} for data of type {}", i, dtype_name(c.dtype(i)),
                    dtype_name(c.dtype(0)));
    if (c.has(i) && broadcast(x, c.shape(i)) != x) {
      return c.fail("operand {} of shape {} for data of shape {}", i, to_string(c.shape(i)),
                    to_string(x));
    }
  }
  return c.set(0, c.dtype(0), x);
}

// The result has the type of the scale.
Status infer_rms_norm(InferContext& c) {
  HONE_RETURN_IF_ERROR(infer_layer_norm(c));
  if (!is_float(c.dtype(1))) return c.fail("scale of type {}", dtype_name(c.dtype(1)));
  return c.set(0, c.dtype(1), c.shape(0));
}

// The mean over the normalised dimensions of f(element) as a stage of its own.
template <typename F>
void mean_stage(EmitContext& c, const char* name, const std::vector<int>& dims, const F& f) {
  std::vector<compute::Axis> reduce;
  double count = 1;
  for (const int d : dims) {
    const int64_t extent = c.input(0).shape[static_cast<size_t>(d)];
    reduce.push_back(compute::make_axis(fmt::format("r{}", d), extent));
    count *= static_cast<double>(extent);
  }
  c.reduce(
      Combine::kSum, StageTag(name, ""), std::move(reduce),
      [&](const Point& point, const std::vector<Expr>& r) {
        std::vector<Expr> index = point.index;
        for (size_t i = 0; i < dims.size(); ++i) index[static_cast<size_t>(dims[i])] = r[i];
        const Expr x = f(point, c.read(0, "data", index));
        return x * lit(x, 1 / count);
      },
      dims);
}

std::vector<int> normalized_dims(const EmitContext& c) {
  const auto rank = static_cast<int64_t>(c.input(0).shape.size());
  std::vector<int> dims;
  for (int64_t d = *normalize_axis(c.node().attributes.integer("axis", -1), rank); d < rank; ++d)
    dims.push_back(static_cast<int>(d));
  return dims;
}

// Mean, variance around it, result: three passes over a row that stays in the cache.
void emit_layer_norm(EmitContext& c) {
  const std::vector<int> dims = normalized_dims(c);
  const double epsilon = c.node().attributes.number("epsilon", 1e-5f);
  mean_stage(c, "mean", dims, [](const Point&, const Expr& x) { return x; });
  mean_stage(c, "variance", dims, [&](const Point& point, const Expr& x) {
    const Expr difference = x - c.last(point);
    return difference * difference;
  });
  c.pointwise("layer_norm", [&](const Point& point) {
    const Expr variance = c.last(point), mean = c.last(point, 1);
    const Expr scale = c.operand(1, "scale", point);
    const Expr x = c.read(0, "data", point.index);
    const Expr deviation = apply<ir::Op::kSqrt>(variance + lit(variance, epsilon));
    Expr y = (x - mean) * (lit(x, 1) / deviation) * scale;
    if (c.node().has_input(2)) y = y + c.operand(2, "bias", point);
    return y;
  });
}

void emit_rms_norm(EmitContext& c) {
  const double epsilon = c.node().attributes.number("epsilon", 1e-5f);
  mean_stage(c, "mean_square", normalized_dims(c),
             [](const Point&, const Expr& x) { return x * x; });
  c.pointwise("rms_norm", [&](const Point& point) {
    const Expr square = c.last(point);
    const Expr x = c.read(0, "data", point.index);
    const Expr root = apply<ir::Op::kSqrt>(square + lit(square, epsilon));
    const Expr y = x * (lit(x, 1) / root), scale = c.operand(1, "scale", point);
    return (y->type == scale->type ? y : ir::cast(scale->type, y)) * scale;
  });
}

// With the statistics as results it is a function of simpler operators.
Status expand_layer_norm(ExpandContext& c) {
  if (!c.wants(1) && !c.wants(2)) {
    c.decline();
    return ok_status();
  }
  HONE_RETURN_IF_ERROR(infer_layer_norm(c));
  const auto rank = c.rank(0);
  std::vector<int64_t> axes;
  for (int64_t d = *normalize_axis(c.attributes().integer("axis", -1), rank); d < rank; ++d)
    axes.push_back(d);
  const int64_t stash = c.attributes().integer("stash_type", 1);
  const auto stash_type = type_of_code(stash);
  if (!stash_type || !is_float(*stash_type))
    return c.fail("stash_type is {}", type_code_text(stash));
  const ValueId x = c.cast(c.input(0), compute_type(c.dtype(0)));
  const ValueId mean = c.reduce("ReduceMean", x, axes);
  const ValueId difference = c.binary("Sub", x, mean);
  const ValueId variance = c.reduce("ReduceMean", c.binary("Mul", difference, difference), axes);
  const ValueId deviation = c.add(
      "Sqrt",
      {c.binary("Add", variance, static_cast<double>(c.attributes().number("epsilon", 1e-5f)))});
  const ValueId inverse = c.add("Reciprocal", {deviation});
  ValueId y = c.binary("Mul", difference, inverse);
  y = c.binary("Mul", c.cast(y, c.dtype(0)), c.input(1));
  if (c.has(2)) y = c.binary("Add", y, c.input(2));
  c.result(0, y);
  c.result(1, c.cast(mean, *stash_type));
  c.result(2, c.cast(inverse, *stash_type));
  return ok_status();
}

// Rows of [N, groups, elements], then scale and bias per channel (or, before opset 21, per group).
Status normalize_groups(ExpandContext& c, int64_t groups, bool per_group) {
  const Shape shape = c.shape(0);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
    return c.fail("{} groups for data of shape {}", groups, to_string(shape));
  const int64_t wanted = per_group ? groups : shape[1];
  for (const size_t i : {1, 2}) {
    if (c.shape(i) != Shape{wanted})
      return c.fail("operand {} of shape {}, expected [{}]", i, to_string(c.shape(i)), wanted);
  }
  const int64_t row = num_elements(shape) / std::max<int64_t>(1, shape[0] * groups);
  const float epsilon = c.attributes().number("epsilon", 1e-5f);
  const ValueId rows = c.reshape(c.input(0), {shape[0], groups, row});
  const DType dtype = c.dtype(0);
  ValueId y = c.add("LayerNormalization", {rows, c.reshape(c.scalar(dtype, 1), {1})},
                    {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  const auto apply = [&](const Shape& channel) {
    y = c.binary("Mul", y, c.reshape(c.cast(c.input(1), dtype), channel));
    y = c.binary("Add", y, c.reshape(c.cast(c.input(2), dtype), channel));
  };
  if (per_group) apply({1, groups, 1});
  y = c.reshape(y, shape);
  Shape channel(shape.size(), 1);
  channel[1] = shape[1];
  if (!per_group) apply(channel);
  c.result(0, y);
  return ok_status();
}

Status expand_group_norm(ExpandContext& c) {
  return normalize_groups(c, c.attributes().integer("num_groups", 0), c.opset() < 21);
}

Status expand_instance_norm(ExpandContext& c) {
  if (c.rank(0) < 2) return c.fail("data of shape {}", to_string(c.shape(0)));
  return normalize_groups(c, c.shape(0)[1], false);
}

// (x - mean) / (deviation + 1e-9)
Status expand_mean_variance(ExpandContext& c) {
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  const auto axes = c.attributes().integers("axes", {0, 2, 3});
  const ValueId x = c.cast(c.input(0), compute_type(c.dtype(0)));
  const ValueId difference = c.binary("Sub", x, c.reduce("ReduceMean", x, axes));
  const ValueId variance = c.reduce("ReduceMean", c.binary("Mul", difference, difference), axes);
  const ValueId deviation = c.binary("Add", c.add("Sqrt", {variance}), 1e-9);
  c.result(0, c.cast(c.binary("Div", difference, deviation), c.dtype(0)));
  return ok_status();
}

Status expand_lp_norm(ExpandContext& c) {
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  const int64_t p = c.attributes().integer("p", 2);
  if (p != 1 && p != 2) return c.fail("p is {}, expected 1 or 2", p);
  const ValueId x = c.cast(c.input(0), compute_type(c.dtype(0)));
  const ValueId norm =
      c.reduce(p == 1 ? "ReduceL1" : "ReduceL2", x, {c.attributes().integer("axis", -1)});
  const ValueId zero = c.scalar(c.dtype_of(x), 0);
  const ValueId none = c.binary("Equal", norm, zero);
  const ValueId y = c.add("Where", {none, zero, c.binary("Div", x, norm)});
  c.result(0, c.cast(y, c.dtype(0)));
  return ok_status();
}

Status infer_lrn(InferContext& c) {
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  if (c.rank(0) < 2) return c.fail("data of shape {}", to_string(c.shape(0)));
  const int64_t size = c.attributes().integer("size", 0);
  if (size < 1 || size > 1 << 24) return c.fail("size is {}", size);
  return c.set(0, c.dtype(0), c.shape(0));
}

// x / (bias + alpha / size * sum of squares of `size` neighbouring channels)^beta
void emit_lrn(EmitContext& c) {
  const Attributes& attributes = c.node().attributes;
  const int64_t size = attributes.integer("size", 1), channels = c.input(0).shape[1];
  const double alpha = attributes.number("alpha", 0.0001f) / static_cast<double>(size);
  const double beta = attributes.number("beta", 0.75f), bias = attributes.number("bias", 1);
  c.reduce(Combine::kSum, StageTag("squares", ""), {compute::make_axis("r", size)},
           [&](const Point& point, const std::vector<Expr>& r) {
             std::vector<Expr> index = point.index;
             index[1] = index[1] + r[0] - (size - 1) / 2;
             const Expr x = c.read(0, "data", index);
             return ir::select(ir::logical_and(ir::less_equal(ir::constant(0), index[1]),
                                               ir::less(index[1], ir::constant(channels))),
                               x * x, lit(x, 0));
           });
  c.pointwise("lrn", [&](const Point& point) {
    const Expr sum = c.last(point);
    const Expr base = sum * lit(sum, alpha) + lit(sum, bias);
    return c.read(0, "data", point.index) / ir::make(ir::Op::kPow, {base, lit(base, beta)});
  });
}

}  // namespace

std::span<const Op> layer_norm_ops() {
  static const Op ops[] = {
      // From opset 17 on it is ONNX's; ONNX Runtime's optimizer writes the same before.
      {.name = "LayerNormalization",
       .min_inputs = 2,
       .max_inputs = 3,
       .max_outputs = 3,
       .kind = Kind::kReduction,
       .attributes = "axis:i epsilon:f stash_type:i",
       .infer = infer_layer_norm,
       .expand = expand_layer_norm,
       .emit = emit_layer_norm},
      {.name = "RMSNormalization",
       .since = 23,
       .min_inputs = 2,
       .max_inputs = 2,
       .kind = Kind::kReduction,
       .attributes = "axis:i epsilon:f stash_type:i",
       .infer = infer_rms_norm,
       .emit = emit_rms_norm},
      {.name = "GroupNormalization",
       .since = 18,
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = "num_groups:i epsilon:f stash_type:i",
       .expand = expand_group_norm},
      {.name = "InstanceNormalization",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = "epsilon:f",
       .expand = expand_instance_norm},
      {.name = "MeanVarianceNormalization",
       .since = 9,
       .attributes = "axes:is",
       .expand = expand_mean_variance},
      {.name = "LpNormalization", .attributes = "axis:i p:i", .expand = expand_lp_norm},
      {.name = "LRN",
       .kind = Kind::kReduction,
       .attributes = "alpha:f beta:f bias:f size:i",
       .infer = infer_lrn,
       .emit = emit_lrn},
  };
  return ops;
}

}  // namespace hone::graph
