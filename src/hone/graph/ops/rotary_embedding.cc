// RotaryEmbedding: pairs of numbers turned by angles that depend on their place in the sequence.
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

Status expand_rotary(ExpandContext& c) {
  const Shape& x = c.shape(0);
  if (x.size() != 3 && x.size() != 4) return c.fail("data of shape {}", to_string(x));
  if (!is_float(c.dtype(0)) || c.dtype(1) != c.dtype(0) || c.dtype(2) != c.dtype(0))
    return c.fail("operands of types {}, {} and {}", dtype_name(c.dtype(0)), dtype_name(c.dtype(1)),
                  dtype_name(c.dtype(2)));
  ValueId data = c.input(0);
  Shape whole = x;
  if (x.size() == 3) {
    const int64_t heads = c.attributes().integer("num_heads", 0);
    if (heads < 1 || x[2] % heads != 0)
      return c.fail("{} heads in data of shape {}", heads, to_string(x));
    whole = {x[0], x[1], heads, x[2] / heads};
    data = c.reshape(data, whole);
  }
  const int64_t size = whole[3];
  int64_t turned = c.attributes().integer("rotary_embedding_dim", 0);
  if (turned == 0) turned = size;
  if (turned < 2 || turned > size || turned % 2 != 0)
    return c.fail("rotary_embedding_dim {} of heads of size {}", turned, size);
  const int64_t half = turned / 2;
  const int64_t sequence = x.size() == 3 ? x[1] : x[2];
  // Angles as [batch, sequence, half], with a dimension for the heads.
  const Shape by_head =
      x.size() == 3 ? Shape{x[0], sequence, 1, half} : Shape{x[0], 1, sequence, half};
  ValueId angles[2];
  for (size_t i = 0; i < 2; ++i) {
    angles[i] = c.input(i + 1);
    if (c.has(3)) angles[i] = c.add("Gather", {angles[i], c.input(3)}, {{"axis", int64_t{0}}});
    if (c.shape_of(angles[i]) != Shape{x[0], sequence, half}) {
      return c.fail("a cache of shape {} for batches of {}, a sequence of {} and {} angles",
                    to_string(c.shape(i + 1)), x[0], sequence, half);
    }
    angles[i] = c.reshape(angles[i], by_head);
  }
  const bool interleaved = c.attributes().integer("interleaved", 0) != 0;
  const ValueId first = interleaved ? c.slice(data, 3, 0, turned, 2) : c.slice(data, 3, 0, half);
  const ValueId second =
      interleaved ? c.slice(data, 3, 1, turned, 2) : c.slice(data, 3, half, turned);
  const ValueId real =
      c.binary("Sub", c.binary("Mul", angles[0], first), c.binary("Mul", angles[1], second));
  const ValueId imaginary =
      c.binary("Add", c.binary("Mul", angles[1], first), c.binary("Mul", angles[0], second));
  std::vector<ValueId> parts = {real, imaginary};
  if (interleaved) {
    Shape pairs = whole, joined = whole;
    pairs[3] = half;
    pairs.push_back(1);
    joined[3] = turned;
    const ValueId both = c.add("Concat", {c.reshape(real, pairs), c.reshape(imaginary, pairs)},
                               {{"axis", int64_t{4}}});
    parts = {c.reshape(both, joined)};
  }
  if (turned < size) parts.push_back(c.slice(data, 3, turned, size));
  const ValueId y = parts.size() == 1 ? parts[0] : c.add("Concat", parts, {{"axis", int64_t{3}}});
  c.result(0, c.reshape(y, x));
  return ok_status();
}

}  // namespace

std::span<const Op> rotary_embedding_ops() {
  static const Op ops[] = {
      {.name = "RotaryEmbedding",
       .since = 23,
       .min_inputs = 3,
       .max_inputs = 4,
       .attributes = "interleaved:i num_heads:i rotary_embedding_dim:i",
       .expand = expand_rotary},
  };
  return ops;
}

}  // namespace hone::graph
