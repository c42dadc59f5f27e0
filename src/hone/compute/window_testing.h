// compute/window_testing.h - for tests: reductions of windows in one to three dimensions.
#pragma once

#include <cmath>

#include "hone/compute/dag_testing.h"

namespace hone::compute::testing {

struct WindowShape {
  std::vector<int64_t> results = {7, 5};  // extents along which windows slide
  int64_t batch = 1, channels = 4;
  int64_t kernel = 3, stride = 1, dilation = 1;
  bool channels_last = false;
  bool residual = false;
  bool is_max = false;   // a pool, which has no weights
  bool guarded = false;  // the input has no border, so what lies outside is tested
};

// Depthwise convolution + bias (+ residual) + relu, or the maximum of each window.
inline Dag windows(const WindowShape& s) {
  DagBuilder b;
  const size_t rank = s.results.size();
  const int64_t reach = s.dilation * (s.kernel - 1), border = s.guarded ? reach / 2 : 0;
  const auto placed = [&](auto batch, auto channel, const auto& inside) {
    std::vector<decltype(batch)> all = {batch};
    if (!s.channels_last) all.push_back(channel);
    all.insert(all.end(), inside.begin(), inside.end());
    if (s.channels_last) all.push_back(channel);
    return all;
  };
  std::vector<int64_t> input, weights = {s.channels};
  for (const int64_t n : s.results) {
    input.push_back((n - 1) * s.stride + reach + 1 - 2 * border);
    weights.push_back(s.kernel);
  }
  const std::vector<int64_t> whole = placed(s.batch, s.channels, s.results);
  const auto data = b.input("data", placed(s.batch, s.channels, input)),
             out = b.output("out", whole);
  const auto axes = [&] {
    std::vector<Axis> inside;
    for (size_t d = 0; d < rank; ++d)
      inside.push_back(make_axis(fmt::format("o{}", d), s.results[d]));
    return placed(make_axis("n", s.batch), make_axis("c", s.channels), inside);
  };
  const std::vector<Axis> a = axes();
  std::vector<Axis> taps;
  for (size_t d = 0; d < rank; ++d) taps.push_back(make_axis(fmt::format("k{}", d), s.kernel));
  const auto v = variables(a), k = variables(taps);
  const size_t first = s.channels_last ? 1 : 2, channel = s.channels_last ? v.size() - 1 : 1;
  std::vector<ir::Expr> at, factor = {v[channel]};
  ir::Expr inside;
  for (size_t d = 0; d < rank; ++d) {
    const ir::Expr place = v[first + d] * s.stride + k[d] * s.dilation - border;
    at.push_back(place);
    factor.push_back(k[d]);
    const ir::Expr exists = ir::logical_and(ir::less_equal(ir::constant(0), place),
                                            ir::less(place, ir::constant(input[d])));
    inside = inside ? ir::logical_and(inside, exists) : exists;
  }
  const auto element = [&](double outside) {
    const ir::Expr e = ir::load(data, placed(v[0], v[channel], at));
    return s.guarded ? ir::select(inside, e, ir::constant_float(outside)) : e;
  };
  if (s.is_max) {
    b.max("max_pool", a, taps, View(out), element(-HUGE_VAL));
    return finish(std::move(b));
  }
  const auto weight = b.constant("weight", weights), bias = b.constant("bias", {s.channels});
  const auto other = s.residual ? b.input("other", whole) : nullptr;
  const auto sums = b.intermediate("depthwise", whole);
  b.sum("depthwise", a, taps, View(sums), element(0) * ir::load(weight, factor));
  const std::vector<Axis> e = axes();
  const auto ve = variables(e);
  ir::Expr value = ir::load(sums, ve) + ir::load(bias, {ve[channel]});
  if (other) value = value + ir::load(other, ve);
  b.pointwise("relu", e, View(out), ir::max(value, ir::constant_float(0)));
  return finish(std::move(b));
}

}  // namespace hone::compute::testing
