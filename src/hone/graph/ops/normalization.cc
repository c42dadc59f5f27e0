// BatchNormalization, Softmax and LogSoftmax.
#include "hone/graph/expand.h"
#include "hone/graph/ops/pointwise.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status check_batch_norm(const InferContext& c, int64_t channels) {
  if (c.attributes().integer("spatial", 1) != 1) return c.unsupported("spatial 0");
  for (size_t i = 0; i < 5; ++i) {
    if (!is_float(c.dtype(i))) return c.fail("operand {} of type {}", i, dtype_name(c.dtype(i)));
    if (i > 0 && c.shape(i) != Shape{channels})
      return c.fail("operand {} of shape {}, expected [{}]", i, to_string(c.shape(i)), channels);
  }
  return ok_status();
}

Status infer_batch_norm(InferContext& c) {
  if (c.rank(0) < 2) return c.fail("data of shape {}", to_string(c.shape(0)));
  HONE_RETURN_IF_ERROR(check_batch_norm(c, c.shape(0)[1]));
  if (c.num_outputs() > 1) return c.fail("{} results outside training", c.num_outputs());
  return c.set(0, c.dtype(0), c.shape(0));
}

// y = (x - mean) / deviation * scale + bias, with mean and variance of the batch; results 1 and 2
// are the running ones, 3 and 4 (before opset 14) the batch's.
void train_batch_norm(ExpandContext& c, ValueId x) {
  const DType type = compute_type(c.dtype(0)), running = c.dtype(3);
  const float momentum = c.attributes().number("momentum", 0.9f);
  x = c.cast(x, type);
  const Shape channels = c.shape(1);
  Shape row(c.shape_of(x).size(), 1);
  row[1] = channels[0];
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < c.rank_of(x); ++d) {
    if (d != 1) axes.push_back(d);
  }
  const ValueId mean = c.reduce("ReduceMean", x, axes);
  const ValueId difference = c.binary("Sub", x, mean);
  const ValueId variance = c.reduce("ReduceMean", c.binary("Mul", difference, difference), axes);
  const double epsilon = c.attributes().number("epsilon", 1e-5f);
  const ValueId deviation = c.add("Sqrt", {c.binary("Add", variance, epsilon)});
  const ValueId scale = c.reshape(c.cast(c.input(1), type), row);
  const ValueId bias = c.reshape(c.cast(c.input(2), type), row);
  const ValueId scaled = c.binary("Mul", c.binary("Div", difference, deviation), scale);
  c.result(0, c.reshape(c.cast(c.binary("Add", scaled, bias), c.dtype(0)), c.shape(0)));
  for (const size_t i : {1, 2}) {
    const ValueId now = c.reshape(i == 1 ? mean : variance, channels);
    const ValueId before = c.cast(c.input(i + 2), type);
    const ValueId both = c.binary("Add", c.binary("Mul", before, static_cast<double>(momentum)),
                                  c.binary("Mul", now, 1.0 - momentum));
    c.result(i, c.cast(both, running));
    c.result(i + 2, c.cast(now, running));
  }
}

// Data of rank 1 has one channel.
Status expand_batch_norm(ExpandContext& c) {
  const bool training = c.opset() >= 14 ? c.attributes().integer("training_mode", 0) != 0
                                        : c.wants(1) || c.wants(2) || c.wants(3) || c.wants(4);
  if (c.rank(0) == 0) return c.fail("data of shape []");
  const bool flat = c.rank(0) == 1;
  if (!training && !flat) {
    c.decline();
    return ok_status();
  }
  HONE_RETURN_IF_ERROR(check_batch_norm(c, flat ? 1 : c.shape(0)[1]));
  const ValueId x = flat ? c.reshape(c.input(0), {c.shape(0)[0], 1}) : c.input(0);
  if (training) {
    train_batch_norm(c, x);
  } else {
    const ValueId y =
        c.add("BatchNormalization", {x, c.input(1), c.input(2), c.input(3), c.input(4)},
              {{"epsilon", c.attributes().number("epsilon", 1e-5f)}});
    c.result(0, c.reshape(y, c.shape(0)));
  }
  return ok_status();
}

void emit_batch_norm(EmitContext& c) {
  const double epsilon = c.node().attributes.number("epsilon", 1e-5f);
  c.pointwise("batch_norm", [&](const Point& point) {
    const Expr x = c.operand(0, "data", point);
    const auto read = [&](size_t i, const char* role) {
      const Expr value = c.read(i, role, {point.index[1]});
      return value->type == x->type ? value : ir::cast(x->type, value);
    };
    const Expr scale = read(1, "scale"), bias = read(2, "bias");
    const Expr mean = read(3, "mean"), variance = read(4, "variance");
    const Expr deviation = apply<ir::Op::kSqrt>(variance + lit(x, epsilon));
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
      const Expr shifted = c.read(0, "data", point.index) - c.last(point, 1);
      return shifted - apply<ir::Op::kLog>(c.last(point));
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

}  // namespace

std::span<const Op> normalization_ops() {
  static const Op ops[] = {
      {.name = "BatchNormalization",
       .min_inputs = 5,
       .max_inputs = 5,
       .max_outputs = 5,
       .kind = Kind::kElementwise,
       .layout = Layout::kFollow,
       .attributes = "epsilon:f momentum:f spatial:i training_mode:i",
       .infer = infer_batch_norm,
       .expand = expand_batch_norm,
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
