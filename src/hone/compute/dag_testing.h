// compute/dag_testing.h - small Dags of the usual kernel classes, for tests and benchmarks.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "hone/compute/dag.h"

namespace hone::compute::testing {

inline Dag finish(DagBuilder&& builder) {
  Result<Dag> dag = std::move(builder).build();
  HONE_ASSERT(dag.ok(), dag.status().message().c_str());
  return *std::move(dag);
}

// out[m, n] = sum over k of data[m, k] * weight[k, n]
inline Dag gemm(int64_t m, int64_t n, int64_t k) {
  DagBuilder b;
  const auto data = b.input("data", {m, k}), weight = b.constant("weight", {k, n});
  const auto out = b.output("out", {m, n});
  const auto i = make_axis("m", m), j = make_axis("n", n), r = make_axis("k", k);
  const auto [vi, vj, vr] =
      std::tuple(ir::variable(i.var), ir::variable(j.var), ir::variable(r.var));
  b.sum("matmul", {i, j}, {r}, View(out), ir::load(data, {vi, vr}) * ir::load(weight, {vr, vj}));
  return finish(std::move(b));
}

// out[m, n] = sum over k of data[m, k] * weight[k, n] + bias[n] in 16 bits with sums in float32, as
// tasks of half-precision models have it. The operands may lie transposed.
struct HalfProduct {
  DType type = DType::kF16;
  bool transposed_data = false, transposed_weight = false;
  int64_t batch = 0;  // products of several matrices with the same weight; 0: one, without an axis
};
inline Dag half_gemm(int64_t m, int64_t n, int64_t k, const HalfProduct& how = {}) {
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

// The product of left[batch, m, k] and right[batch, k, n], both of which are inputs.
inline Dag product_of_two(int64_t batch, int64_t m, int64_t n, int64_t k) {
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

// out[m, n] = sum over k of weight[m, k] * data[k, n], or of rows[k, m] * data[k, n].
inline Dag few_columns(int64_t m, int64_t n, int64_t k, bool transposed) {
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

struct ConvShape {
  int64_t h = 7, w = 7;  // extents of the input without border
  int64_t ic = 3, oc = 8;
  int64_t kernel = 3, stride = 1, pad = 1;
  int64_t border = 1;  // width around the output
  bool residual = false;
  int64_t kernel_w = 0;  // as `kernel` if 0
};

// NHWC convolution + bias (+ residual) + relu on an input with a border, into an output with a
// border.
inline Dag conv2d(const ConvShape& s) {
  DagBuilder b;
  const int64_t kw = s.kernel_w > 0 ? s.kernel_w : s.kernel;
  const int64_t oh = (s.h + 2 * s.pad - s.kernel) / s.stride + 1,
                ow = (s.w + 2 * s.pad - kw) / s.stride + 1;
  const auto data = b.input("data", {1, s.h + 2 * s.pad, s.w + 2 * s.pad, s.ic});
  const auto weight = b.constant("weight", {s.oc, s.ic, s.kernel, kw}),
             bias = b.constant("bias", {s.oc});
  const auto other = s.residual ? b.input("other", {1, oh, ow, s.oc}) : nullptr;
  const auto out = b.output("out", {1, oh + 2 * s.border, ow + 2 * s.border, s.oc});
  const auto sums = b.intermediate("conv2d", {1, oh, ow, s.oc});
  const auto axes = [&] {
    return std::vector<Axis>{make_axis("n", 1), make_axis("oh", oh), make_axis("ow", ow),
                             make_axis("oc", s.oc)};
  };
  const auto a = axes();
  const std::vector<Axis> r = {make_axis("kh", s.kernel), make_axis("kw", kw),
                               make_axis("ic", s.ic)};
  const auto v = variables(a), vr = variables(r);
  b.sum("conv2d", a, r, View(sums),
        ir::load(data, {v[0], v[1] * s.stride + vr[0], v[2] * s.stride + vr[1], vr[2]}) *
            ir::load(weight, {v[3], vr[2], vr[0], vr[1]}));
  ir::BufferPtr last = sums;
  const auto chain = [&](const char* op, const auto& value) {
    const auto e = axes();
    const auto ve = variables(e);
    const bool is_last = std::string_view(op) == "relu";
    const auto to = is_last ? out : b.intermediate(op, {1, oh, ow, s.oc});
    const View view = is_last ? View(out, {0, s.border, s.border, 0}, {1, oh, ow, s.oc}) : View(to);
    b.pointwise(op, e, view, value(ir::load(last, ve), ve));
    last = to;
  };
  chain("bias", [&](const ir::Expr& x, const auto& at) { return x + ir::load(bias, {at[3]}); });
  if (s.residual)
    chain("add", [&](const ir::Expr& x, const auto& at) { return x + ir::load(other, at); });
  chain("relu", [&](const ir::Expr& x, const auto&) { return ir::max(x, ir::constant_float(0)); });
  return finish(std::move(b));
}

// NHWC 3x3 convolution + relu with groups of ic to oc channels, on an input with a border.
inline Dag grouped_conv2d(int64_t h, int64_t w, int64_t groups, int64_t ic, int64_t oc,
                          int64_t stride) {
  DagBuilder b;
  const int64_t oh = (h - 1) / stride + 1, ow = (w - 1) / stride + 1;
  const auto data = b.input("data", {1, h + 2, w + 2, groups * ic}),
             weight = b.constant("weight", {groups, oc, ic, 3, 3});
  const auto out = b.output("out", {1, oh, ow, groups * oc}),
             sums = b.intermediate("grouped_conv2d", {1, oh, ow, groups, oc});
  const auto axes = [&] {
    return std::vector<Axis>{make_axis("n", 1), make_axis("oh", oh), make_axis("ow", ow),
                             make_axis("g", groups), make_axis("oc", oc)};
  };
  const auto a = axes(), e = axes();
  const std::vector<Axis> r = {make_axis("kh", 3), make_axis("kw", 3), make_axis("ic", ic)};
  const auto v = variables(a), vr = variables(r), ve = variables(e);
  b.sum("grouped_conv2d", a, r, View(sums),
        ir::load(data, {v[0], v[1] * stride + vr[0], v[2] * stride + vr[1], v[3] * ic + vr[2]}) *
            ir::load(weight, {v[3], v[4], vr[2], vr[0], vr[1]}));
  Stage relu;
  relu.name = relu.op = "relu";
  relu.axes = e;
  relu.outputs.push_back({.buffer = out,
                          .write = {ve[0], ve[1], ve[2], ve[3] * oc + ve[4]},
                          .value = ir::max(ir::load(sums, ve), ir::constant_float(0))});
  b.add(std::move(relu));
  return finish(std::move(b));
}

// NHWC depthwise 3x3 convolution + relu.
inline Dag depthwise(int64_t h, int64_t w, int64_t c, int64_t stride) {
  DagBuilder b;
  const int64_t oh = (h - 1) / stride + 1, ow = (w - 1) / stride + 1;
  const auto data = b.input("data", {1, h + 2, w + 2, c}),
             weight = b.constant("weight", {c, 1, 3, 3});
  const auto out = b.output("out", {1, oh, ow, c}),
             sums = b.intermediate("depthwise", {1, oh, ow, c});
  const auto axes = [&] {
    return std::vector<Axis>{make_axis("n", 1), make_axis("oh", oh), make_axis("ow", ow),
                             make_axis("c", c)};
  };
  const auto a = axes(), e = axes();
  const std::vector<Axis> r = {make_axis("kh", 3), make_axis("kw", 3)};
  const auto v = variables(a), vr = variables(r);
  b.sum("depthwise", a, r, View(sums),
        ir::load(data, {v[0], v[1] * stride + vr[0], v[2] * stride + vr[1], v[3]}) *
            ir::load(weight, {v[3], ir::constant(0), vr[0], vr[1]}));
  b.pointwise("relu", e, View(out), ir::max(ir::load(sums, variables(e)), ir::constant_float(0)));
  return finish(std::move(b));
}

// NHWC max pooling 3x3 stride 2, padding by a guard.
inline Dag max_pool(int64_t h, int64_t w, int64_t c) {
  DagBuilder b;
  const int64_t oh = (h - 1) / 2 + 1, ow = (w - 1) / 2 + 1;
  const auto data = b.input("data", {1, h, w, c}), out = b.output("out", {1, oh, ow, c});
  const std::vector<Axis> a = {make_axis("n", 1), make_axis("oh", oh), make_axis("ow", ow),
                               make_axis("c", c)};
  const std::vector<Axis> r = {make_axis("kh", 3), make_axis("kw", 3)};
  const auto v = variables(a), vr = variables(r);
  const ir::Expr row = v[1] * 2 + vr[0] - 1, col = v[2] * 2 + vr[1] - 1;
  const ir::Expr inside = ir::logical_and(
      ir::logical_and(ir::less_equal(ir::constant(0), row), ir::less(row, ir::constant(h))),
      ir::logical_and(ir::less_equal(ir::constant(0), col), ir::less(col, ir::constant(w))));
  b.max("max_pool", a, r, View(out),
        ir::select(inside, ir::load(data, {v[0], row, col, v[3]}), ir::constant_float(-HUGE_VAL)));
  return finish(std::move(b));
}

// Mean over height and width: [1, h, w, c] -> [1, c].
inline Dag global_pool(int64_t h, int64_t w, int64_t c) {
  DagBuilder b;
  const auto data = b.input("data", {1, h, w, c}), out = b.output("out", {1, c}),
             sums = b.intermediate("sum", {1, c});
  const std::vector<Axis> a = {make_axis("n", 1), make_axis("c", c)},
                          e = {make_axis("n", 1), make_axis("c", c)};
  const std::vector<Axis> r = {make_axis("h", h), make_axis("w", w)};
  const auto v = variables(a), vr = variables(r);
  b.sum("sum", a, r, View(sums), ir::load(data, {v[0], vr[0], vr[1], v[1]}));
  b.pointwise("mean", e, View(out),
              ir::load(sums, variables(e)) * ir::constant_float(1.0 / static_cast<double>(h * w)));
  return finish(std::move(b));
}

// Softmax over the middle dimension of [outer, n, inner] by its steps: maximum, exponentials, their
// sum, quotients.
inline Dag softmax(int64_t outer, int64_t n, int64_t inner) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("data", {outer, n, inner});
  const ir::BufferPtr y = b.output("out", {outer, n, inner});
  const ir::BufferPtr largest = b.intermediate("largest", {outer, inner});
  const ir::BufferPtr powers = b.intermediate("powers", {outer, n, inner});
  const ir::BufferPtr total = b.intermediate("total", {outer, inner});
  const auto all = [&] {
    return std::vector{make_axis("o", outer), make_axis("n", n), make_axis("i", inner)};
  };
  const auto rows = [&] { return std::vector{make_axis("o", outer), make_axis("i", inner)}; };
  {
    const auto axes = rows();
    const auto v = variables(axes);
    const Axis r = make_axis("r", n);
    b.max("", axes, {r}, View(largest), View(x).read({v[0], ir::variable(r.var), v[1]}));
  }
  {
    const auto axes = all();
    const auto v = variables(axes);
    b.pointwise("", axes, View(powers),
                ir::make(ir::Op::kExp, {View(x).read(v) - View(largest).read({v[0], v[2]})}));
  }
  {
    const auto axes = rows();
    const auto v = variables(axes);
    const Axis r = make_axis("r", n);
    b.sum("", axes, {r}, View(total), View(powers).read({v[0], ir::variable(r.var), v[1]}));
  }
  {
    const auto axes = all();
    const auto v = variables(axes);
    b.pointwise("softmax", axes, View(y), View(powers).read(v) / View(total).read({v[0], v[2]}));
  }
  return finish(std::move(b));
}

// Subtracts from each row of [rows, n] its mean.
inline Dag centred_rows(int64_t rows, int64_t n) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("data", {rows, n});
  const ir::BufferPtr y = b.output("out", {rows, n});
  const ir::BufferPtr total = b.intermediate("total", {rows});
  const std::vector<Axis> row = {make_axis("o", rows)}, along = {make_axis("r", n)};
  b.sum("", row, along, View(total),
        View(x).read({ir::variable(row[0].var), ir::variable(along[0].var)}));
  const std::vector<Axis> axes = {make_axis("o", rows), make_axis("n", n)};
  const std::vector<ir::Expr> v = variables(axes);
  const ir::Expr share = ir::constant_float(1.0 / static_cast<double>(n), DType::kF32);
  b.pointwise("centre", axes, View(y), View(x).read(v) - View(total).read({v[0]}) * share);
  return finish(std::move(b));
}

// Subtracts from each row of [rows, n] its mean and divides the result by the root of its mean
// square.
inline Dag normalized_rows(int64_t rows, int64_t n) {
  DagBuilder b;
  const ir::BufferPtr x = b.input("data", {rows, n});
  const ir::BufferPtr y = b.output("out", {rows, n});
  const ir::BufferPtr mean = b.intermediate("mean", {rows});
  const ir::BufferPtr square = b.intermediate("square", {rows});
  const ir::Expr share = ir::constant_float(1.0 / static_cast<double>(n), DType::kF32);
  const auto centred = [&](const ir::Expr& row, const ir::Expr& at) {
    return ir::load(x, {row, at}) - ir::load(mean, {row});
  };
  for (const ir::BufferPtr& sum : {mean, square}) {
    const std::vector<Axis> row = {make_axis("o", rows)}, along = {make_axis("r", n)};
    const ir::Expr o = ir::variable(row[0].var), r = ir::variable(along[0].var);
    const ir::Expr term = sum == mean ? ir::load(x, {o, r}) : centred(o, r) * centred(o, r);
    b.sum("", row, along, View(sum), term * share);
  }
  const std::vector<Axis> axes = {make_axis("o", rows), make_axis("n", n)};
  const std::vector<ir::Expr> v = variables(axes);
  const ir::Expr root =
      ir::make(ir::Op::kSqrt, {ir::load(square, {v[0]}) + ir::constant_float(1e-5, DType::kF32)});
  b.pointwise("normalize", axes, View(y), centred(v[0], v[1]) / root);
  return finish(std::move(b));
}

// A 3x3 depthwise convolution with relu on an input with a border, then a product over its channels
// with a bias.
inline Dag separable(int64_t h, int64_t w, int64_t c, int64_t oc) {
  DagBuilder b;
  const auto data = b.input("data", {1, h + 2, w + 2, c});
  const auto taps = b.constant("taps", {c, 3, 3}), weight = b.constant("weight", {oc, c}),
             bias = b.constant("bias", {oc});
  const auto out = b.output("out", {1, h, w, oc});
  const auto windows = b.intermediate("windows", {1, h, w, c}),
             between = b.intermediate("between", {1, h, w, c}),
             sums = b.intermediate("sums", {1, h, w, oc});
  std::vector<Axis> axes;
  const auto at = [&](const char* last, int64_t extent) {
    axes = {make_axis("n", 1), make_axis("oh", h), make_axis("ow", w), make_axis(last, extent)};
    return variables(axes);
  };
  auto v = at("c", c);
  const std::vector<Axis> k = {make_axis("kh", 3), make_axis("kw", 3)};
  const auto t = variables(k);
  b.sum(
      "depthwise_conv2d", axes, k, View(windows),
      ir::load(data, {v[0], v[1] + t[0], v[2] + t[1], v[3]}) * ir::load(taps, {v[3], t[0], t[1]}));
  v = at("c", c);
  b.pointwise("relu", axes, View(between), ir::max(ir::load(windows, v), ir::constant_float(0)));
  v = at("oc", oc);
  const Axis r = make_axis("ic", c);
  b.sum("conv2d", axes, {r}, View(sums),
        ir::load(between, {v[0], v[1], v[2], ir::variable(r.var)}) *
            ir::load(weight, {v[3], ir::variable(r.var)}));
  v = at("oc", oc);
  b.pointwise("bias", axes, View(out), ir::load(sums, v) + ir::load(bias, {v[3]}));
  return finish(std::move(b));
}

// softmax(q k + mask) v per head, where q and v are [m, heads, depth] and k is [heads, depth, n].
// With an offset, query m sees keys up to m + offset, and the reductions end there (Stage::until).
inline Dag attention(int64_t heads, int64_t m, int64_t n, int64_t depth,
                     std::optional<int64_t> offset = {}) {
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

// An extern stage: running sums along the rows of [rows, n]. With `columns`, that many sums run
// side by side, one element apart.
inline Dag running_sum(int64_t rows, int64_t n, std::optional<int64_t> columns = {}) {
  DagBuilder b;
  std::vector<int64_t> shape = {rows, n};
  if (columns) shape.push_back(*columns);
  const ir::BufferPtr x = b.input("data", shape);
  const ir::BufferPtr y = b.output("out", shape);
  Stage stage;
  stage.name = stage.op = "running_sum";
  stage.axes = {make_axis("row", rows)};
  stage.extern_reads = {x};
  stage.outputs.push_back({.buffer = y});
  const ir::Expr row = ir::variable(stage.axes[0].var);
  const ir::BufferPtr sum = ir::make_buffer("sum", DType::kF32, {}, ir::Scope::kStack);
  const ir::VarPtr k = ir::make_var("k");
  std::vector<ir::Expr> at = {row, ir::variable(k)};
  if (columns) {
    stage.axes.push_back(make_axis("column", *columns));
    at.push_back(ir::variable(stage.axes[1].var));
  }
  stage.body = {ir::make_alloc(
      sum, {ir::make_store(sum, {}, ir::constant_float(0)),
            ir::make_for(k, ir::constant(0), ir::constant(n), ir::ForKind::kSerial,
                         {ir::make_store(sum, {}, ir::load(sum, {}) + ir::load(x, at)),
                          ir::make_store(y, at, ir::load(sum, {}))})})};
  b.add(std::move(stage));
  return finish(std::move(b));
}

// An index into `extent` elements, as operators make it of data.
inline ir::Expr clamped(const ir::Expr& index, int64_t extent) {
  return ir::min(ir::max(index, ir::constant(0)), ir::constant(extent - 1));
}

// Rows of a table: out[i, j] = data[indices[i], j], a body for each i.
inline Dag gather_rows(int64_t rows, int64_t n, int64_t table) {
  DagBuilder b;
  const auto data = b.input("data", {table, n}), out = b.output("out", {rows, n});
  const auto indices = b.input("indices", {rows}, DType::kI64);
  const Axis i = make_axis("i", rows), j = make_axis("j", n);
  const ir::Expr row = ir::variable(i.var), column = ir::variable(j.var);
  Stage stage{.name = "gather", .op = "gather", .axes = {i}};
  const ir::Expr from = clamped(ir::load(indices, {row}), table);
  stage.body = {ir::make_for(j.var, ir::constant(0), ir::constant(n), ir::ForKind::kSerial,
                             {ir::make_store(out, {row, column}, ir::load(data, {from, column}))})};
  stage.extern_reads = {data, indices};
  stage.outputs.push_back({.buffer = out});
  b.add(std::move(stage));
  return finish(std::move(b));
}

// out = data, and then rows of it, one after the other: out[indices[u], j] += updates[u, j].
inline Dag add_rows(int64_t rows, int64_t n, int64_t updates) {
  DagBuilder b;
  const auto data = b.input("data", {rows, n}), out = b.output("out", {rows, n});
  const auto indices = b.input("indices", {updates}, DType::kI64);
  const auto values = b.input("values", {updates, n});
  const Axis i = make_axis("i", rows), j = make_axis("j", n), u = make_axis("u", updates),
             k = make_axis("k", n);
  const auto loop = [](const Axis& axis, const ir::Stmt& body) {
    return ir::make_for(axis.var, ir::constant(0), ir::constant(axis.extent), ir::ForKind::kSerial,
                        {body});
  };
  const auto [vi, vj, vu, vk] = std::array{ir::variable(i.var), ir::variable(j.var),
                                           ir::variable(u.var), ir::variable(k.var)};
  const std::vector<ir::Expr> to = {clamped(ir::load(indices, {vu}), rows), vk};
  Stage stage{.name = "add_rows", .op = "add_rows"};
  stage.body = {
      loop(i, loop(j, ir::make_store(out, {vi, vj}, ir::load(data, {vi, vj})))),
      loop(u, loop(k, ir::make_store(out, to, ir::load(out, to) + ir::load(values, {vu, vk}))))};
  stage.extern_reads = {data, indices, values};
  stage.outputs.push_back({.buffer = out});
  b.add(std::move(stage));
  return finish(std::move(b));
}

// Argmax of n elements down each column, together with the maximum.
inline Dag arg_max(int64_t rows, int64_t n, int64_t columns) {
  DagBuilder b;
  const auto data = b.input("data", {rows, n, columns});
  const auto out = b.output("out", {rows, columns}, DType::kI64);
  Stage stage;
  stage.name = "extreme";
  stage.axes = {make_axis("row", rows), make_axis("column", columns)};
  stage.reduce = {make_axis("r", n)};
  const auto at = variables(stage.axes);
  const ir::Expr r = ir::variable(stage.reduce[0].var);
  std::vector<ir::Expr> old, other;
  const ir::Expr identity[] = {ir::cast(DType::kI32, ir::constant(0)),
                               ir::constant_float(-HUGE_VAL)};
  for (const ir::Expr& start : identity) {
    const auto buffer = b.intermediate("extreme", {rows, columns}, start->type);
    const auto part = ir::make_buffer(buffer->name + ".other", start->type, {rows, columns});
    old.push_back(ir::load(buffer, at));
    other.push_back(ir::load(part, at));
    stage.outputs.push_back({buffer, at, nullptr, start, nullptr, part});
  }
  const auto replace = [&](const ir::Expr& taken, const ir::Expr& place, const ir::Expr& value) {
    return std::array{ir::select(taken, place, old[0]), ir::select(taken, value, old[1])};
  };
  const ir::Expr x = ir::load(data, {at[0], r, at[1]});
  const auto next = replace(ir::less(old[1], x), ir::cast(DType::kI32, r), x);
  const ir::Expr first =
      ir::logical_and(ir::make(ir::Op::kEq, {old[1], other[1]}), ir::less(other[0], old[0]));
  const auto joined =
      replace(ir::make(ir::Op::kOr, {ir::less(old[1], other[1]), first}), other[0], other[1]);
  for (size_t i = 0; i < 2; ++i) {
    stage.outputs[i].value = next[i];
    stage.outputs[i].merge = joined[i];
  }
  const ir::BufferPtr place = stage.outputs[0].buffer;
  b.add(std::move(stage));
  const std::vector<Axis> a = {make_axis("row", rows), make_axis("column", columns)};
  b.pointwise("arg_max", a, View(out), ir::cast(DType::kI64, ir::load(place, variables(a))));
  return finish(std::move(b));
}

inline Dag transpose(int64_t c, int64_t h, int64_t w, int64_t border) {
  DagBuilder b;
  const auto data = b.input("data", {1, c, h, w}),
             out = b.output("out", {1, h + 2 * border, w + 2 * border, c});
  const std::vector<Axis> a = {make_axis("n", 1), make_axis("h", h), make_axis("w", w),
                               make_axis("c", c)};
  const auto v = variables(a);
  b.pointwise("transpose", a, View(out, {0, border, border, 0}, {1, h, w, c}),
              ir::load(data, {v[0], v[3], v[1], v[2]}));
  return finish(std::move(b));
}

inline Dag sum_of_two(int64_t rows, int64_t n) {
  DagBuilder b;
  const auto data = b.input("data", {rows, n}), other = b.input("other", {rows, n});
  const auto out = b.output("out", {rows, n});
  const std::vector<Axis> a = {make_axis("row", rows), make_axis("column", n)};
  const auto v = variables(a);
  b.pointwise("add", a, View(out), ir::load(data, v) + ir::load(other, v));
  return finish(std::move(b));
}

// 0 <= index < extent
inline ir::Expr within(const ir::Expr& index, int64_t extent) {
  return ir::logical_and(ir::less_equal(ir::constant(0), index),
                         ir::less(index, ir::constant(extent)));
}

// Inverted residual block: expand 1x1, depthwise 3x3, project 1x1.
inline Dag inverted_residual(int64_t h, int64_t w, int64_t ci, int64_t ce, int64_t co) {
  DagBuilder b;
  const auto data = b.input("data", {h, w, ci}), w1 = b.constant("w1", {ci, ce}),
             wd = b.constant("wd", {3, 3, ce});
  const auto w2 = b.constant("w2", {ce, co}), out = b.output("out", {h, w, co});
  const auto e = b.intermediate("expand", {h, w, ce}), d = b.intermediate("depthwise", {h, w, ce});
  {
    const auto a = std::vector{make_axis("h", h), make_axis("w", w), make_axis("c", ce)};
    const auto r = std::vector{make_axis("k", ci)};
    const auto x = variables(a);
    const ir::Expr k = ir::variable(r[0].var);
    b.sum("conv1", a, r, View(e), ir::load(data, {x[0], x[1], k}) * ir::load(w1, {k, x[2]}));
  }
  {
    const auto a = std::vector{make_axis("h", h), make_axis("w", w), make_axis("c", ce)};
    const auto r = std::vector{make_axis("kh", 3), make_axis("kw", 3)};
    const auto x = variables(a), k = variables(r);
    const ir::Expr row = x[0] + k[0] - 1, col = x[1] + k[1] - 1;
    b.sum("dw", a, r, View(d),
          ir::select(ir::logical_and(within(row, h), within(col, w)), ir::load(e, {row, col, x[2]}),
                     ir::constant_float(0)) *
              ir::load(wd, {k[0], k[1], x[2]}));
  }
  const auto a = std::vector{make_axis("h", h), make_axis("w", w), make_axis("c", co)};
  const auto r = std::vector{make_axis("k", ce)};
  const auto x = variables(a);
  const ir::Expr k = ir::variable(r[0].var);
  b.sum("conv2", a, r, View(out), ir::load(d, {x[0], x[1], k}) * ir::load(w2, {k, x[2]}));
  return finish(std::move(b));
}

}  // namespace hone::compute::testing
