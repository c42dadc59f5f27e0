// Pooling by a p-norm: LpPool, GlobalLpPool, as functions of simpler operators.
#include <algorithm>

#include "hone/graph/emit.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"

namespace hone::graph {
namespace {

// |x|^p
ValueId power(ExpandContext& c, ValueId x, int64_t p) {
  return c.binary("Pow", c.add("Abs", {x}), static_cast<double>(p));
}

Result<int64_t> order_of_norm(const ExpandContext& c) {
  const int64_t p = c.attributes().integer("p", 2);
  if (p < 1) return c.fail("p is {}, expected at least 1", p);
  if (!is_float(c.dtype(0))) return c.fail("data of type {}", dtype_name(c.dtype(0)));
  if (c.rank(0) < 3)
    return c.fail("data of shape {}, expected N, C and spatial dimensions", to_string(c.shape(0)));
  return p;
}

// The p-norm of all spatial elements of a channel.
Status expand_global_lp_pool(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const int64_t p, order_of_norm(c));
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < c.rank(0); ++d) axes.push_back(d);
  const ValueId x = c.cast(c.input(0), compute_type(c.dtype(0)));
  const ValueId sum = c.reduce("ReduceSum", power(c, x, p), axes);
  c.result(0, c.cast(c.binary("Pow", sum, 1 / static_cast<double>(p)), c.dtype(0)));
  return ok_status();
}

// A window's sum is its mean times its elements, once the padding reaches to its end; padding
// counts as zeros.
Status expand_lp_pool(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const int64_t p, order_of_norm(c));
  const Result<Window> window = make_window(c.attributes(), c.shape(0), {});
  if (!window.ok()) return c.fail("{}", window.status().message());
  Shape pads = window->pad_low;
  for (size_t d = 0; d < window->rank(); ++d)
    pads.push_back(std::max(window->pad_high[d], window->reach_high(d)));
  const ValueId x = c.cast(c.input(0), compute_type(c.dtype(0)));
  const ValueId mean = c.add("AveragePool", {power(c, x, p)},
                             {{"kernel_shape", window->kernel},
                              {"strides", window->stride},
                              {"dilations", window->dilation},
                              {"pads", pads},
                              {"count_include_pad", int64_t{1}}});
  const ValueId sum = c.binary("Mul", mean, static_cast<double>(num_elements(window->kernel)));
  c.result(0, c.cast(c.binary("Pow", sum, 1 / static_cast<double>(p)), c.dtype(0)));
  return ok_status();
}

}  // namespace

std::span<const Op> lp_pool_ops() {
  static const Op ops[] = {
      {.name = "GlobalLpPool", .since = 2, .attributes = "p:i", .expand = expand_global_lp_pool},
      {.name = "LpPool",
       .since = 2,
       .attributes = "auto_pad:s ceil_mode:i dilations:is kernel_shape:is p:i pads:is strides:is",
       .expand = expand_lp_pool},
  };
  return ops;
}

}  // namespace hone::graph
