// Pooling by a p-norm: LpPool, GlobalLpPool, as functions of simpler operators.
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// |x|^p
ValueId power(ExpandContext& c, ValueId x, int64_t p) {
  return c.binary("Pow", c.add("Abs", {x}), static_cast<double>(p));
}

Result<int64_t> order_of_norm(const ExpandContext& c) {
  const int64_t p = c.attributes().integer("p", 2);
  if (p < 1) return c.fail("p is {}, expected at least 1", p);
  if (c.rank(0) < 3)
    return c.fail("data of shape {}, expected N, C and spatial dimensions", to_string(c.shape(0)));
  return p;
}

// The p-norm of all spatial elements of a channel.
Status expand_global_lp_pool(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const int64_t p, order_of_norm(c));
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < c.rank(0); ++d) axes.push_back(d);
  const ValueId sum = c.reduce("ReduceSum", power(c, c.input(0), p), axes);
  c.result(0, c.binary("Pow", sum, 1 / static_cast<double>(p)));
  return ok_status();
}

// A window's sum is its mean times its elements; padding counts as zeros.
Status expand_lp_pool(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const int64_t p, order_of_norm(c));
  const Attributes& given = c.attributes();
  const Shape kernel = given.integers("kernel_shape");
  const Shape ones(kernel.size(), 1), none(2 * kernel.size(), 0);
  if (kernel.empty() || given.integer("ceil_mode", 0) != 0)
    return kernel.empty() ? c.fail("kernel_shape is missing") : c.unsupported("ceil_mode 1");
  const ValueId mean = c.add("AveragePool", {power(c, c.input(0), p)},
                             {{"kernel_shape", kernel},
                              {"strides", given.integers("strides", ones)},
                              {"dilations", given.integers("dilations", ones)},
                              {given.has("auto_pad") ? "auto_pad" : "pads",
                               given.has("auto_pad") ? Attribute(given.text("auto_pad", "NOTSET"))
                                                     : Attribute(given.integers("pads", none))},
                              {"count_include_pad", int64_t{1}}});
  const ValueId sum = c.binary("Mul", mean, static_cast<double>(num_elements(kernel)));
  c.result(0, c.binary("Pow", sum, 1 / static_cast<double>(p)));
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
