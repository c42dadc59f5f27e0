// Gemm and MatMul.
#include <cmath>

#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/weights.h"

namespace hone::graph {
namespace {

using ir::Expr;

Status check_types(const InferContext& c) {
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.has(i)) continue;
    if (c.dtype(i) == DType::kBool || c.dtype(i) != c.dtype(0)) {
      return c.fail("operand {} of type {}, expected numbers of one type", i,
                    dtype_name(c.dtype(i)));
    }
  }
  return ok_status();
}

// Integers are scaled by integers only.
Status check_factor(const InferContext& c, const char* name) {
  const float factor = c.attributes().number(name, 1);
  if (is_float(c.dtype(0)) || factor == std::floor(factor)) return ok_status();
  return c.unsupported("{} is {} for operands of type {}", name, factor, dtype_name(c.dtype(0)));
}

// A sum of nothing is zero.
Status set_product(InferContext& c, Shape shape, int64_t depth) {
  if (depth > 0) return c.set(0, c.dtype(0), std::move(shape));
  HONE_ASSIGN_OR_RETURN(Tensor zeros, c.new_constant(c.dtype(0), std::move(shape)));
  return c.set_constant(0, std::move(zeros));
}

struct Product {
  Shape shape;
  int64_t depth = 0;
};

Result<Product> gemm_product(const InferContext& c) {
  HONE_RETURN_IF_ERROR(check_types(c));
  const Shape& a = c.shape(0);
  const Shape& b = c.shape(1);
  if (a.size() != 2 || b.size() != 2)
    return c.fail("operands of shapes {} and {}", to_string(a), to_string(b));
  const bool trans_a = c.attributes().integer("transA", 0) != 0;
  const bool trans_b = c.attributes().integer("transB", 0) != 0;
  if (a[trans_a ? 0 : 1] != b[trans_b ? 1 : 0]) {
    return c.fail("operands of shapes {}{} and {}{}", to_string(a), trans_a ? " transposed" : "",
                  to_string(b), trans_b ? " transposed" : "");
  }
  Shape shape = {a[trans_a ? 1 : 0], b[trans_b ? 0 : 1]};
  if (c.has(2) && broadcast(shape, c.shape(2)) != shape) {
    return c.fail("C of shape {} for a product of shape {}", to_string(c.shape(2)),
                  to_string(shape));
  }
  HONE_RETURN_IF_ERROR(check_factor(c, "alpha"));
  HONE_RETURN_IF_ERROR(check_factor(c, "beta"));
  return Product{std::move(shape), a[trans_a ? 0 : 1]};
}

Status infer_gemm(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(Product product, gemm_product(c));
  return set_product(c, std::move(product.shape), product.depth);
}

// A sum over nothing is the bias.
Status expand_gemm(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const Product product, gemm_product(c));
  if (product.depth > 0 || !c.has(2)) {
    c.decline();
    return ok_status();
  }
  const double beta = static_cast<double>(c.attributes().number("beta", 1));
  c.result(0, c.add("Expand", {c.binary("Mul", c.input(2), beta), c.integers(product.shape)}));
  return ok_status();
}

void emit_gemm(EmitContext& c) {
  const Attributes& attributes = c.node().attributes;
  const bool trans_a = attributes.integer("transA", 0) != 0;
  const bool trans_b = attributes.integer("transB", 0) != 0;
  const double alpha = attributes.number("alpha", 1);
  const double beta = attributes.number("beta", 1);
  const DType dtype = compute_type(c.result().dtype);
  c.name_dims({"m", "n"});
  const int64_t depth = c.input(0).shape[trans_a ? 0 : 1];
  c.reduce(
      Combine::kSum, "gemm", {compute::make_axis("k", depth)},
      [&](const Point& point, const std::vector<Expr>& r) {
        const Expr& m = point.index[0];
        const Expr& n = point.index[1];
        const Expr a = c.read(0, "data", trans_a ? std::vector{r[0], m} : std::vector{m, r[0]});
        const Expr b = c.read(1, "weight", trans_b ? std::vector{n, r[0]} : std::vector{r[0], n});
        return a * as_factor(c, b);
      });
  if (alpha != 1) {
    c.pointwise("scale", [&](const Point& point) { return c.last(point) * literal(dtype, alpha); });
  }
  if (c.node().has_input(2) && beta != 0) {
    c.pointwise("bias", [&](const Point& point) {
      const Expr sum = c.last(point);
      const Expr bias = c.operand(2, "bias", point);
      return sum + (beta == 1 ? bias : bias * literal(dtype, beta));
    });
  }
}

// numpy's matmul: a vector counts as a row on the left and as a column on the right.
Status infer_any_matmul(InferContext& c) {
  Shape a = c.shape(0), b = c.shape(1);
  const auto fail = [&] {
    return c.fail("operands of shapes {} and {}", to_string(c.shape(0)), to_string(c.shape(1)));
  };
  if (a.empty() || b.empty()) return fail();
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2]) return fail();
  const auto batch = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!batch) return fail();
  Shape shape = *batch;
  if (!row) shape.push_back(a[a.size() - 2]);
  if (!column) shape.push_back(b.back());
  return set_product(c, std::move(shape), a.back());
}

Status infer_matmul(InferContext& c) {
  HONE_RETURN_IF_ERROR(check_types(c));
  return infer_any_matmul(c);
}

void emit_matmul(EmitContext& c) {
  const Shape& a = c.input(0).shape;
  const Shape& b = c.input(1).shape;
  const size_t rank = c.result().shape.size();
  const bool row = a.size() == 1, column = b.size() == 1;
  const size_t batches = rank - (row ? 0 : 1) - (column ? 0 : 1);
  std::vector<std::string> roles;
  for (size_t d = 0; d < batches; ++d) roles.push_back(batches == 1 ? "b" : fmt::format("b{}", d));
  if (!row) roles.emplace_back("m");
  if (!column) roles.emplace_back("n");
  c.name_dims(roles);
  const auto coordinates = [&](const Point& point, const Shape& shape, bool vector,
                               const Expr& last_but_one, const Expr& last) {
    std::vector<Expr> index;
    const size_t own = vector ? 0 : shape.size() - 2;
    for (size_t d = 0; d < own; ++d) {
      index.push_back(shape[d] == 1 ? ir::constant(0) : point.index[batches - own + d]);
    }
    if (last_but_one) index.push_back(last_but_one);
    if (last) index.push_back(last);
    return index;
  };
  c.reduce(Combine::kSum, batches == 0 ? "gemm" : "matmul", {compute::make_axis("k", a.back())},
           [&](const Point& point, const std::vector<Expr>& r) {
             const Expr m = row ? nullptr : point.index[batches];
             const Expr n = column ? nullptr : point.index.back();
             const Expr x = c.read(0, "data", coordinates(point, a, row, m, r[0]));
             const Expr y = c.read(1, "weight", coordinates(point, b, column, r[0], n));
             return x * as_factor(c, y);
           });
}

}  // namespace

std::span<const Op> matrix_ops() {
  static const Op ops[] = {
      {.name = "Gemm",
       .min_inputs = 2,
       .max_inputs = 3,
       .kind = Kind::kContraction,
       .attributes = "alpha:f beta:f transA:i transB:i",
       .infer = infer_gemm,
       .expand = expand_gemm,
       .emit = emit_gemm},
      {.name = "MatMul",
       .min_inputs = 2,
       .max_inputs = 2,
       .kind = Kind::kContraction,
       .infer = infer_matmul,
       .emit = emit_matmul},
      // A product in float32 by weights that are integers of fewer bytes (exact_products).
      {.name = "hone.ExactMatMul",
       .min_inputs = 2,
       .max_inputs = 2,
       .kind = Kind::kContraction,
       .infer = infer_any_matmul,
       .emit = emit_matmul},
  };
  return ops;
}

}  // namespace hone::graph
