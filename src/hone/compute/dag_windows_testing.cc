// compute/dag_windows_testing.cc - convolutions and pools.
#include <cmath>

#include "hone/compute/dag_testing.h"

namespace hone::compute::testing {

Dag conv2d(const ConvShape& s) {
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

Dag grouped_conv2d(int64_t h, int64_t w, int64_t groups, int64_t ic, int64_t oc, int64_t stride) {
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

Dag depthwise(int64_t h, int64_t w, int64_t c, int64_t stride) {
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

Dag max_pool(int64_t h, int64_t w, int64_t c) {
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

Dag global_pool(int64_t h, int64_t w, int64_t c) {
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

Dag separable(int64_t h, int64_t w, int64_t c, int64_t oc) {
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

Dag inverted_residual(int64_t h, int64_t w, int64_t ci, int64_t ce, int64_t co) {
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
