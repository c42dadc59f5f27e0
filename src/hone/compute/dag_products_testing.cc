// compute/dag_products_testing.cc - products of matrices, and attention.
#include <cmath>
#include <tuple>

#include "hone/compute/dag_testing.h"

namespace hone::compute::testing {

Dag gemm(int64_t m, int64_t n, int64_t k) {
  DagBuilder b;
  const auto data = b.input("data", {m, k}), weight = b.constant("weight", {k, n});
  const auto out = b.output("out", {m, n});
  const auto i = make_axis("m", m), j = make_axis("n", n), r = make_axis("k", k);
  const auto [vi, vj, vr] =
      std::tuple(ir::variable(i.var), ir::variable(j.var), ir::variable(r.var));
  b.sum("matmul", {i, j}, {r}, View(out), ir::load(data, {vi, vr}) * ir::load(weight, {vr, vj}));
  return finish(std::move(b));
}

Dag half_gemm(int64_t m, int64_t n, int64_t k, const HalfProduct& how) {
  DagBuilder b;
  const auto shape = [&](std::vector<int64_t> matrix) {
    if (how.batch > 0) matrix.insert(matrix.begin(), how.batch);
    return matrix;
  };
  using Shape = std::vector<int64_t>;
  const auto data =
      b.input("data", shape(how.transposed_data ? Shape{k, m} : Shape{m, k}), how.type);
  const auto weight =
      b.constant("weight", how.transposed_weight ? Shape{n, k} : Shape{k, n}, how.type);
  const auto bias = b.constant("bias", {n}, how.type);
  const auto sums = b.intermediate("matmul", shape({m, n}));
  const auto out = b.output("out", shape({m, n}), how.type);
  const auto axes = [&] {
    std::vector<Axis> made = {make_axis("m", m), make_axis("n", n)};
    if (how.batch > 0) made.insert(made.begin(), make_axis("b", how.batch));
    return made;
  };
  const auto a = axes(), e = axes();
  const auto r = make_axis("k", k);
  const auto v = variables(a), ve = variables(e);
  const ir::Expr i = v[v.size() - 2], j = v.back(), kk = ir::variable(r.var);
  std::vector<ir::Expr> at = how.transposed_data ? std::vector{kk, i} : std::vector{i, kk};
  if (how.batch > 0) at.insert(at.begin(), v[0]);
  const auto wide = [](const ir::Expr& x) { return ir::cast(DType::kF32, x); };
  b.sum(
      "matmul", a, {r}, View(sums),
      wide(ir::load(data, at)) *
          wide(ir::load(weight, how.transposed_weight ? std::vector{j, kk} : std::vector{kk, j})));
  b.pointwise("bias", e, View(out),
              ir::cast(how.type, ir::load(sums, ve) + wide(ir::load(bias, {ve.back()}))));
  return finish(std::move(b));
}

Dag product_of_two(int64_t batch, int64_t m, int64_t n, int64_t k) {
  DagBuilder b;
  const auto left = b.input("left", {batch, m, k}), right = b.input("right", {batch, k, n});
  const auto out = b.output("out", {batch, m, n});
  const auto axes = std::vector<Axis>{make_axis("b", batch), make_axis("m", m), make_axis("n", n)};
  const auto sum = make_axis("k", k);
  const auto v = variables(axes);
  const ir::Expr r = ir::variable(sum.var);
  b.sum("matmul", axes, {sum}, View(out),
        ir::load(left, {v[0], v[1], r}) * ir::load(right, {v[0], r, v[2]}));
  return finish(std::move(b));
}

Dag few_columns(int64_t m, int64_t n, int64_t k, bool transposed) {
  DagBuilder b;
  const auto left = transposed ? b.input("rows", {k, m}) : b.constant("weight", {m, k});
  const auto data = b.input("data", {k, n});
  const auto out = b.output("out", {m, n});
  const auto i = make_axis("m", m), j = make_axis("n", n), r = make_axis("k", k);
  const auto [vi, vj, vr] =
      std::tuple(ir::variable(i.var), ir::variable(j.var), ir::variable(r.var));
  const ir::Expr row = transposed ? ir::load(left, {vr, vi}) : ir::load(left, {vi, vr});
  b.sum("matmul", {i, j}, {r}, View(out), row * ir::load(data, {vr, vj}));
  return finish(std::move(b));
}

Dag attention(int64_t heads, int64_t m, int64_t n, int64_t depth, std::optional<int64_t> offset) {
  DagBuilder b;
  const auto q = b.input("query", {m, heads, depth}), k = b.input("key", {heads, depth, n}),
             v = b.input("value", {n, heads, depth}), mask = b.input("mask", {n});
  const auto out = b.output("out", {m, heads, depth});
  const auto scores = b.intermediate("scores", {m, heads, n}),
             masked = b.intermediate("masked", {m, heads, n}),
             most = b.intermediate("most", {m, heads}),
             weights = b.intermediate("weights", {m, heads, n}),
             total = b.intermediate("total", {m, heads}),
             sums = b.intermediate("sums", {m, heads, depth});
  std::vector<Axis> axes;
  const auto at = [&](const char* last, int64_t extent) {
    axes = {make_axis("m", m), make_axis("h", heads)};
    if (extent > 0) axes.push_back(make_axis(last, extent));
    return variables(axes);
  };
  const auto along = [](const std::vector<ir::Expr>& row, const Axis& axis) {
    return std::vector{row[0], row[1], ir::variable(axis.var)};
  };
  const auto last = [](const std::vector<ir::Expr>& at) { return std::vector{at[0], at[1]}; };
  auto i = at("n", n);
  const Axis e = make_axis("e", depth), r = make_axis("r", n);
  b.sum("", axes, {e}, View(scores),
        ir::load(q, along(i, e)) * ir::load(k, {i[1], ir::variable(e.var), i[2]}));
  i = at("n", n);
  const ir::Expr score = ir::load(scores, i) * ir::constant_float(0.25) + ir::load(mask, {i[2]});
  b.pointwise("mask", axes, View(masked),
              offset ? ir::select(ir::less_equal(i[2], i[0] + *offset), score,
                                  ir::constant_float(-HUGE_VAL))
                     : score);
  i = at("", 0);
  b.max("", axes, {r}, View(most), ir::load(masked, along(i, r)));
  i = at("n", n);
  b.pointwise("", axes, View(weights),
              ir::make(ir::Op::kExp, {ir::load(masked, i) - ir::load(most, last(i))}));
  i = at("", 0);
  const Axis s = make_axis("r", n), t = make_axis("r", n);
  b.sum("", axes, {s}, View(total), ir::load(weights, along(i, s)));
  i = at("d", depth);
  b.sum("", axes, {t}, View(sums),
        ir::load(weights, along(i, t)) * ir::load(v, {ir::variable(t.var), i[1], i[2]}));
  i = at("d", depth);
  b.pointwise("attention", axes, View(out), ir::load(sums, i) / ir::load(total, last(i)));
  Dag dag = finish(std::move(b));
  for (Stage& stage : dag.stages) {
    if (stage.op != "attention") stage.name = stage.outputs[0].buffer->name;
    if (offset && !stage.reduce.empty() && stage.reduce[0].var->name == "r")
      stage.until = ir::variable(stage.axes[0].var) + (*offset + 1);
  }
  HONE_ASSERT(verify(dag).ok(), "an end of a reduction is affine");
  return dag;
}

}  // namespace hone::compute::testing
