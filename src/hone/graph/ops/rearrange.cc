// Operators that are functions of slices, reshapes, transpositions and broadcasts: Expand, Tile,
// DepthToSpace, SpaceToDepth.
#include "hone/graph/emit.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/expand.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

Status infer_expand(InferContext& c) {
  HONE_ASSIGN_OR_RETURN(const Shape wanted, c.integers(1, "the shape"));
  auto shape = broadcast(c.shape(0), wanted);
  if (!shape) return c.fail("cannot expand {} to {}", to_string(c.shape(0)), to_string(wanted));
  return c.set(0, c.dtype(0), std::move(*shape));
}

void emit_expand(EmitContext& c) {
  c.pointwise("expand", [&](const Point& point) { return c.operand(0, "data", point); });
}

bool like_operand(const Graph&, const Node& node, const std::vector<bool>& known) {
  return known[static_cast<size_t>(node.inputs[0])];
}

// A repeated dimension is broadcast over a new one before it.
// `all_apart`: every dimension gets one of its own for its repeats, also where there is one.
Status tile(ExpandContext& c, bool all_apart) {
  HONE_ASSIGN_OR_RETURN(const auto repeats, c.integers(1, "repeats"));
  const Shape& x = c.shape(0);
  if (repeats.size() != x.size())
    return c.fail("{} repeats for a value of shape {}", repeats.size(), to_string(x));
  Shape apart, repeated, result;
  for (size_t d = 0; d < x.size(); ++d) {
    if (repeats[d] < 0 || repeats[d] > 1 << 24) return c.fail("repeats are {}", to_string(repeats));
    result.push_back(x[d] * repeats[d]);
    const bool is_apart = all_apart || (repeats[d] != 1 && x[d] != 1);
    if (is_apart) {
      apart.push_back(1);
      repeated.push_back(repeats[d]);
    }
    apart.push_back(x[d]);
    repeated.push_back(x[d] == 1 && !is_apart ? repeats[d] : x[d]);
  }
  const ValueId wide = c.add("Expand", {c.reshape(c.input(0), apart), c.integers(repeated)});
  c.result(0, c.reshape(wide, result));
  return ok_status();
}

Status expand_tile(ExpandContext& c) { return tile(c, false); }

Status expand_tile_apart(ExpandContext& c) { return tile(c, true); }

Result<int64_t> block_of(const InferContext& c) {
  const int64_t block = c.attributes().integer("blocksize", 0);
  if (c.rank(0) != 4 || block < 1 || block > 1 << 12)
    return c.fail("blocksize {} for data of shape {}", block, to_string(c.shape(0)));
  return block;
}

Status expand_depth_to_space(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const int64_t b, block_of(c));
  const std::string mode = c.attributes().text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.fail("mode '{}'", mode);
  const Shape& x = c.shape(0);
  const int64_t depth = x[1] / (b * b);
  if (depth * b * b != x[1]) return c.fail("blocksize {} for {} channels", b, x[1]);
  const bool block_first = mode == "DCR";
  const ValueId apart = c.reshape(c.input(0), block_first ? Shape{x[0], b, b, depth, x[2], x[3]}
                                                          : Shape{x[0], depth, b, b, x[2], x[3]});
  const ValueId moved =
      c.transpose(apart, block_first ? Shape{0, 3, 4, 1, 5, 2} : Shape{0, 1, 4, 2, 5, 3});
  c.result(0, c.reshape(moved, {x[0], depth, x[2] * b, x[3] * b}));
  return ok_status();
}

Status expand_space_to_depth(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const int64_t b, block_of(c));
  const Shape& x = c.shape(0);
  if (x[2] % b != 0 || x[3] % b != 0)
    return c.fail("blocksize {} for data of shape {}", b, to_string(x));
  const ValueId apart = c.reshape(c.input(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
  const std::string mode = c.attributes().text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.fail("mode '{}'", mode);
  const Shape perm = mode == "DCR" ? Shape{0, 3, 5, 1, 2, 4} : Shape{0, 1, 3, 5, 2, 4};
  c.result(0, c.reshape(c.transpose(apart, perm), {x[0], x[1] * b * b, x[2] / b, x[3] / b}));
  return ok_status();
}

}  // namespace

std::span<const Op> rearrange_ops() {
  static const Op ops[] = {
      {.name = "Expand",
       .since = 8,
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_expand,
       .fold = evaluate_node,
       .emit = emit_expand,
       .non_negative = like_operand},
      {.name = "Tile", .since = 6, .min_inputs = 2, .max_inputs = 2, .expand = expand_tile},
      // This one becomes the same operators at all sizes (widen_rules.cc).
      {.name = "hone.Tile", .min_inputs = 2, .max_inputs = 2, .expand = expand_tile_apart},
      {.name = "DepthToSpace", .attributes = "blocksize:i mode:s", .expand = expand_depth_to_space},
      {.name = "SpaceToDepth", .attributes = "blocksize:i mode:s", .expand = expand_space_to_depth},
  };
  return ops;
}

}  // namespace hone::graph
