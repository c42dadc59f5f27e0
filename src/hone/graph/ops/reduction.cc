// Reductions over dimensions: ReduceSum, ReduceMean, ... ReduceLogSumExp.
#include <algorithm>
#include <cmath>

#include "hone/graph/ops/pointwise.h"
#include "hone/tensor/fill.h"

namespace hone::graph {
namespace {

using ir::Expr;

// A reduction with the functions applied before and after it.
struct Reduction {
  std::string_view name;
  Combine combine;
  const char* tag;
  Expr (*before)(const Expr&) = nullptr;
  Expr (*after)(const Expr&, double count) = nullptr;
  double of_nothing = 0;  // the result where nothing is reduced
};

Expr square(const Expr& x) { return x * x; }
Expr mean(const Expr& sum, double count) {
  return is_float(sum->type) ? sum * lit(sum, 1 / count) : sum / lit(sum, count);
}
// f of a float; of an integer in double.
template <ir::Op op>
Expr real_function(const Expr& x, double) {
  if (is_float(x->type)) return apply<op>(x);
  return ir::cast(x->type, apply<op>(ir::cast(DType::kF64, x)));
}

constexpr double kInfinity = HUGE_VAL;
const Reduction kReductions[] = {
    {"ReduceSum", Combine::kSum, "reduce_sum"},
    {"ReduceMean", Combine::kSum, "reduce_mean", nullptr, mean, NAN},
    {"ReduceProd", Combine::kProduct, "reduce_prod", nullptr, nullptr, 1},
    {"ReduceMax", Combine::kMaxOrNan, "reduce_max", nullptr, nullptr, -kInfinity},
    {"ReduceMin", Combine::kMinOrNan, "reduce_min", nullptr, nullptr, kInfinity},
    {"ReduceL1", Combine::kSum, "reduce_l1", apply<ir::Op::kAbs>},
    {"ReduceL2", Combine::kSum, "reduce_l2", square, real_function<ir::Op::kSqrt>},
    {"ReduceSumSquare", Combine::kSum, "reduce_sum_square", square},
    {"ReduceLogSum", Combine::kSum, "reduce_log_sum", nullptr, real_function<ir::Op::kLog>,
     -kInfinity},
    {"ReduceLogSumExp", Combine::kSum, "reduce_log_sum_exp", nullptr, nullptr, -kInfinity},
};

const Reduction& reduction_of(const Node& node) {
  for (const Reduction& reduction : kReductions) {
    if (reduction.name == node.type) return reduction;
  }
  HONE_ASSERT(false, "the table has every reduction");
}

bool takes_extreme(const Reduction& reduction) {
  return reduction.combine == Combine::kMaxOrNan || reduction.combine == Combine::kMinOrNan;
}

// Returns, per dimension, whether it is reduced.
Result<std::vector<bool>> reduced(const InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const auto axes, c.integers_or_attribute(1, "axes"));
  const bool all = !axes || axes->empty();
  std::vector<bool> result(static_cast<size_t>(c.rank(0)),
                           all && c.attributes().integer("noop_with_empty_axes", 0) == 0);
  if (all) return result;
  for (const int64_t given : *axes) {
    const auto axis = normalize_axis(given, c.rank(0));
    if (!axis) return c.fail("axis {} of a value of shape {}", given, to_string(c.shape(0)));
    result[static_cast<size_t>(*axis)] = true;
  }
  return result;
}

// The reduction of nothing.
Status set_identity(InferContext& c, const Reduction& reduction, const Shape& shape) {
  const DType dtype = c.dtype(0);
  HONE_ASSIGN_OR_RETURN(Tensor tensor, c.new_constant(dtype, shape));
  Tensor identity(dtype, {});
  if (takes_extreme(reduction) && dtype == DType::kBool) {
    identity.set(0, reduction.combine == Combine::kMinOrNan);
  } else if (takes_extreme(reduction) && !is_float(dtype)) {
    const int64_t limit = combine_identity(reduction.combine, dtype)->int_value;
    if (dtype_bytes(dtype) == 8) {
      identity.as<int64_t>()[0] = limit;
    } else {
      identity.set(0, static_cast<double>(limit));
    }
  } else if (is_float(dtype) || std::isfinite(reduction.of_nothing)) {
    identity.set(0, reduction.of_nothing);
  }
  fill_with(tensor, identity);
  return c.set_constant(0, std::move(tensor));
}

Status infer_reduction(InferContext& c) {
  const Reduction& reduction = reduction_of(c.node());
  // Sums and counts need not fit in a byte or two.
  if (!takes_extreme(reduction) && !is_float(c.dtype(0)) && dtype_bytes(c.dtype(0)) < 4)
    return c.fail("data of type {}", dtype_name(c.dtype(0)));
  HONE_ASSIGN_OR_RETURN(const auto drop, reduced(c));
  const bool keep = c.attributes().integer("keepdims", 1) != 0;
  Shape shape;
  for (size_t d = 0; d < drop.size(); ++d) {
    if (!drop[d]) shape.push_back(c.shape(0)[d]);
    if (drop[d] && keep) shape.push_back(1);
  }
  if (num_elements(c.shape(0)) == 0 && num_elements(shape) > 0)
    return set_identity(c, reduction, shape);
  return c.set(0, c.dtype(0), std::move(shape));
}

// The dimensions that are reduced, as axes, and where a point of the result reads.
struct Reduce {
  std::vector<bool> drop;
  bool keep = true;
  Shape shape = {};
  [[nodiscard]] std::vector<compute::Axis> axes() const {
    std::vector<compute::Axis> all;
    for (size_t d = 0; d < drop.size(); ++d) {
      if (drop[d]) all.push_back(compute::make_axis(fmt::format("r{}", d), shape[d]));
    }
    return all;
  }
  [[nodiscard]] double count() const {
    double product = 1;
    for (size_t d = 0; d < drop.size(); ++d) {
      if (drop[d]) product *= static_cast<double>(shape[d]);
    }
    return product;
  }
  [[nodiscard]] std::vector<Expr> place(const Point& point, const std::vector<Expr>& r) const {
    std::vector<Expr> index;
    size_t next = 0, at = 0;
    for (const bool dropped : drop) {
      index.push_back(dropped ? r[next++] : point.index[at]);
      if (!dropped || keep) ++at;
    }
    return index;
  }
};

// log(sum(exp(x))) = m + log(sum(exp(x - m))), m the largest x if it is finite.
void emit_log_sum_exp(EmitContext& c, const Reduce& reduce) {
  const auto element = [&](const Point& point, const std::vector<Expr>& r) {
    const Expr x = c.read(0, "data", reduce.place(point, r));
    return is_float(x->type) ? x : ir::cast(DType::kF64, x);
  };
  const auto finite = [](const Expr& m) {
    return ir::select(ir::less(apply<ir::Op::kAbs>(m), lit(m, kInfinity)), m, lit(m, 0));
  };
  c.reduce(Combine::kMax, StageTag("largest", ""), reduce.axes(), element);
  c.reduce(Combine::kSum, StageTag("reduce_sum", ""), reduce.axes(),
           [&](const Point& point, const std::vector<Expr>& r) {
             return apply<ir::Op::kExp>(element(point, r) - finite(c.last(point)));
           });
  c.pointwise("reduce_log_sum_exp", [&](const Point& point) {
    const Expr result = apply<ir::Op::kLog>(c.last(point)) + finite(c.last(point, 1));
    return ir::cast(compute_type(c.result().dtype), result);
  });
}

void emit_reduction(EmitContext& c) {
  const Reduction& reduction = reduction_of(c.node());
  auto drop = reduced(InferContext(const_cast<Graph&>(c.graph()), c.node()));
  HONE_ASSERT(drop.ok(), "the shape rule has checked the axes");
  const Reduce reduce{std::move(drop).value(), c.node().attributes.integer("keepdims", 1) != 0,
                      c.input(0).shape};
  const DType dtype = compute_type(c.result().dtype);
  const auto element = [&](const Point& point, const std::vector<Expr>& r) {
    Expr x = c.read(0, "data", reduce.place(point, r));
    if (dtype == DType::kBool) x = ir::cast(DType::kU8, x);
    return reduction.before != nullptr ? reduction.before(x) : x;
  };
  const auto finished = [&](const Expr& x) {
    if (dtype == DType::kBool) return ir::cast(dtype, x);
    return reduction.after != nullptr ? reduction.after(x, reduce.count()) : x;
  };
  if (reduce.axes().empty()) {
    const bool same = reduction.name == "ReduceLogSumExp";  // log(exp(x))
    c.pointwise(reduction.tag, [&](const Point& point) {
      return same ? c.read(0, "data", point.index) : finished(element(point, {}));
    });
    return;
  }
  if (reduction.name == "ReduceLogSumExp") return emit_log_sum_exp(c, reduce);
  const bool finishes = reduction.after != nullptr || dtype == DType::kBool;
  const char* stage = reduction.combine == Combine::kSum ? "reduce_sum" : reduction.tag;
  c.reduce(reduction.combine, StageTag(stage, reduction.tag), reduce.axes(), element);
  if (finishes) {
    c.pointwise(StageTag("scale", ""), [&](const Point& point) { return finished(c.last(point)); });
  }
}

}  // namespace

std::span<const Op> reduction_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> list;
    for (const Reduction& reduction : kReductions) {
      Op op{.name = reduction.name,
            .kind = Kind::kReduction,
            .layout = Layout::kFollow,
            .infer = infer_reduction,
            .fold = evaluate_node,
            .emit = emit_reduction};
      const bool keeps_sign = !reduction.name.starts_with("ReduceLog");
      op.non_negative = reduction.before != nullptr ? always : keeps_sign ? like_operand : nullptr;
      const int axes_as_operand_since = reduction.name == "ReduceSum" ? 13 : 18;
      op.until = axes_as_operand_since - 1;
      op.attributes = "axes:is keepdims:i";
      list.push_back(op);
      op.since = axes_as_operand_since;
      op.until = kMaxOpset;
      op.max_inputs = 2;
      op.attributes = "keepdims:i noop_with_empty_axes:i";
      list.push_back(op);
    }
    return list;
  }();
  return ops;
}

}  // namespace hone::graph
