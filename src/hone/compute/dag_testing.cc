#include "hone/compute/dag_testing.h"

namespace hone::compute::testing {

Dag finish(DagBuilder&& builder) {
  Result<Dag> dag = std::move(builder).build();
  HONE_ASSERT(dag.ok(), dag.status().message().c_str());
  return *std::move(dag);
}

Dag transpose(int64_t c, int64_t h, int64_t w, int64_t border) {
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

Dag sum_of_two(int64_t rows, int64_t n) {
  DagBuilder b;
  const auto data = b.input("data", {rows, n}), other = b.input("other", {rows, n});
  const auto out = b.output("out", {rows, n});
  const std::vector<Axis> a = {make_axis("row", rows), make_axis("column", n)};
  const auto v = variables(a);
  b.pointwise("add", a, View(out), ir::load(data, v) + ir::load(other, v));
  return finish(std::move(b));
}

ir::Expr clamped(const ir::Expr& index, int64_t extent) {
  return ir::min(ir::max(index, ir::constant(0)), ir::constant(extent - 1));
}

ir::Expr within(const ir::Expr& index, int64_t extent) {
  return ir::logical_and(ir::less_equal(ir::constant(0), index),
                         ir::less(index, ir::constant(extent)));
}

}  // namespace hone::compute::testing
