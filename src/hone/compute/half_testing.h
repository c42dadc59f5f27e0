// compute/half_testing.h - tasks in 16 bits, as half-precision models have them.
#pragma once

#include "hone/compute/dag_testing.h"

namespace hone::compute::testing {

// NHWC convolution + bias + relu in 16 bits with sums in float32, which reads zeros around its
// input. The last extent of the weight's shape is that of the window's columns.
inline Dag half_conv2d(const ConvShape& s, DType type = DType::kF16) {
  DagBuilder b;
  const int64_t kw = s.kernel_w > 0 ? s.kernel_w : s.kernel;
  const int64_t oh = (s.h + 2 * s.pad - s.kernel) / s.stride + 1,
                ow = (s.w + 2 * s.pad - kw) / s.stride + 1;
  const auto data = b.input("data", {1, s.h, s.w, s.ic}, type);
  const auto weight = b.constant("weight", {s.oc, s.ic, s.kernel, kw}, type);
  const auto bias = b.constant("bias", {s.oc}, type),
             out = b.output("out", {1, oh, ow, s.oc}, type);
  const auto sums = b.intermediate("conv2d", {1, oh, ow, s.oc});
  const auto axes = [&] {
    return std::vector<Axis>{make_axis("n", 1), make_axis("oh", oh), make_axis("ow", ow),
                             make_axis("oc", s.oc)};
  };
  const auto a = axes(), e = axes();
  const std::vector<Axis> r = {make_axis("kh", s.kernel), make_axis("kw", kw),
                               make_axis("ic", s.ic)};
  const auto v = variables(a), vr = variables(r), ve = variables(e);
  const ir::Expr row = v[1] * s.stride + vr[0] - s.pad, column = v[2] * s.stride + vr[1] - s.pad;
  const auto within = [](const ir::Expr& at, int64_t extent) {
    return ir::logical_and(ir::less_equal(ir::constant(0), at), ir::less(at, ir::constant(extent)));
  };
  const auto wide = [](const ir::Expr& x) { return ir::cast(DType::kF32, x); };
  const ir::Expr element =
      ir::select(ir::logical_and(within(row, s.h), within(column, s.w)),
                 wide(ir::load(data, {v[0], row, column, vr[2]})), ir::constant_float(0));
  b.sum("conv2d", a, r, View(sums), element * wide(ir::load(weight, {v[3], vr[2], vr[0], vr[1]})));
  const ir::Expr sum = ir::load(sums, ve) + wide(ir::load(bias, {ve[3]}));
  b.pointwise("relu", e, View(out), ir::cast(type, ir::max(sum, ir::constant_float(0))));
  return finish(std::move(b));
}

// attention() with queries, keys, values and results in 16 bits, and all else in float32.
inline Dag half_attention(int64_t heads, int64_t m, int64_t n, int64_t depth,
                          DType type = DType::kF16, std::optional<int64_t> offset = {}) {
  Dag dag = attention(heads, m, n, depth, offset);
  for (ir::Param& param : dag.params) {
    const ir::BufferPtr wide = param.buffer;
    if (wide->name == "mask") continue;
    param.buffer = ir::make_buffer(wide->name, type, wide->shape);
    for (Stage& stage : dag.stages) {
      Output& output = stage.outputs[0];
      output.value = ir::rewrite(output.value, [&](const ir::Expr& e) -> ir::Expr {
        if (e->op != ir::Op::kLoad || e->buffer != wide) return nullptr;
        return ir::cast(DType::kF32, ir::load(param.buffer, e->args));
      });
      if (output.buffer != wide) continue;
      output.buffer = param.buffer;
      output.value = ir::cast(type, output.value);
    }
  }
  HONE_ASSERT(verify(dag).ok(), "types of all stages are those of their buffers");
  return dag;
}

// Lets an attention of m queries add a row of its mask of its own to the scores of each query.
inline void widen_mask(Dag& dag, int64_t m) {
  for (ir::Param& param : dag.params) {
    if (param.buffer->name != "mask") continue;
    const ir::BufferPtr row = param.buffer;
    param.buffer = ir::make_buffer("mask", row->dtype, {m, row->shape[0]});
    for (Stage& stage : dag.stages) {
      stage.outputs[0].value =
          ir::rewrite(stage.outputs[0].value, [&](const ir::Expr& e) -> ir::Expr {
            if (e->op != ir::Op::kLoad || e->buffer != row) return nullptr;
            return ir::load(param.buffer, {ir::variable(stage.axes[0].var), e->args[0]});
          });
    }
  }
}

}  // namespace hone::compute::testing
