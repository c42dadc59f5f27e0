// space/rules/cpu/dot_testing.h - for tests: matrix products whose second operand is transposed, so
// that the terms of a sum are neighbours in memory.
#pragma once

#include "hone/compute/dag_testing.h"

namespace hone::space {

struct DotShape {
  int64_t m = 1, n = 1, k = 1;
  bool constant = true;  // the second operand is a constant
};

// out[m, n] = max(0, sum over k of data[m, k] * weight[n, k])
inline compute::Dag dot_product(const DotShape& s) {
  compute::DagBuilder b;
  const auto data = b.input("data", {s.m, s.k});
  const auto weight = s.constant ? b.constant("weight", {s.n, s.k}) : b.input("weight", {s.n, s.k});
  const auto out = b.output("out", {s.m, s.n});
  const auto sums = b.intermediate("matmul", {s.m, s.n});
  const std::vector<compute::Axis> a = {compute::make_axis("m", s.m), compute::make_axis("n", s.n)};
  const std::vector<compute::Axis> r = {compute::make_axis("k", s.k)};
  const auto v = compute::variables(a), vr = compute::variables(r);
  b.sum("matmul", a, r, compute::View(sums),
        ir::load(data, {v[0], vr[0]}) * ir::load(weight, {v[1], vr[0]}));
  const std::vector<compute::Axis> e = {compute::make_axis("m", s.m), compute::make_axis("n", s.n)};
  b.pointwise("relu", e, compute::View(out),
              ir::max(ir::load(sums, compute::variables(e)), ir::constant_float(0)));
  return compute::testing::finish(std::move(b));
}

}  // namespace hone::space
