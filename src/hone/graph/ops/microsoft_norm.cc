// Normalisations that ONNX Runtime's optimizer makes, with what stands before them
// (ONNX Runtime, ContribOperators.md).
#include "hone/graph/ops/microsoft.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

// Sets a result to LayerNormalization along the last dimension, and results 1 and 2 to its
// statistics where they are wanted.
void layer_norm(ExpandContext& c, ValueId x, ValueId scale, ValueId bias) {
  const float epsilon = c.attributes().number("epsilon", 1e-12F);
  const size_t results = c.wants(1) || c.wants(2) ? 3 : 1;
  const std::vector<ValueId> made = c.add_all("LayerNormalization", {x, scale, bias}, results,
                                              {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  for (size_t i = 0; i < made.size(); ++i) c.result(i, made[i]);
}

// input + skip + bias; the skip may be the same for the whole batch.
Result<ValueId> skip_sum(ExpandContext& c, size_t bias) {
  const Shape& x = c.shape(0);
  if (broadcast(x, c.shape(1)) != x)
    return c.fail("skip of shape {} for data of shape {}", to_string(c.shape(1)), to_string(x));
  ValueId sum = c.binary("Add", c.input(0), c.input(1));
  if (c.has(bias)) {
    if (broadcast(x, c.shape(bias)) != x)
      return c.fail("bias of shape {} for data of shape {}", to_string(c.shape(bias)),
                    to_string(x));
    sum = c.binary("Add", sum, c.input(bias));
  }
  return sum;
}

Status expand_skip_layer_norm(ExpandContext& c) {
  HONE_ASSIGN_OR_RETURN(const ValueId sum, skip_sum(c, 4));
  layer_norm(c, sum, c.input(2), c.input(3));
  c.result(3, sum);
  return ok_status();
}

Status expand_skip_rms_norm(ExpandContext& c) {
  if (c.wants(1) || c.wants(2))
    return c.unsupported("the results mean and inv_std_var, which training alone needs");
  HONE_ASSIGN_OR_RETURN(const ValueId sum, skip_sum(c, 3));
  const float epsilon = c.attributes().number("epsilon", 1e-12F);
  c.result(0, c.add("RMSNormalization", {sum, c.input(2)},
                    {{"axis", int64_t{-1}}, {"epsilon", epsilon}}));
  c.result(3, sum);
  return ok_status();
}

// ONNX Runtime's RMSNormalization, of the default domain.
Status expand_simplified_layer_norm(ExpandContext& c) {
  const int64_t given = c.attributes().integer("axis", -1);
  const float epsilon = c.attributes().number("epsilon", 1e-5F);
  c.result(0, c.add("RMSNormalization", {c.input(0), c.input(1)},
                    {{"axis", given}, {"epsilon", epsilon}}));
  if (!c.wants(1)) return ok_status();
  const auto axis = normalize_axis(given, c.rank(0));
  if (!axis) return c.fail("axis {} of a value of shape {}", given, to_string(c.shape(0)));
  std::vector<int64_t> axes;
  for (int64_t d = *axis; d < c.rank(0); ++d) axes.push_back(d);
  const ValueId x = c.cast(c.input(0), DType::kF32);
  const ValueId square = c.reduce("ReduceMean", c.binary("Mul", x, x), axes);
  const ValueId root = c.add("Sqrt", {c.binary("Add", square, static_cast<double>(epsilon))});
  c.result(1, c.add("Reciprocal", {root}));
  return ok_status();
}

// The rows of a table that operand `ids` asks for.
ValueId rows(ExpandContext& c, size_t table, size_t ids) {
  return c.add("Gather", {c.input(table), c.input(ids)}, {{"axis", int64_t{0}}});
}

// LayerNormalization of the sum of word, position and segment embeddings, and how many words of
// each sequence the mask leaves.
Status expand_embed_layer_norm(ExpandContext& c) {
  constexpr size_t kIds = 0, kSegments = 1, kWords = 2, kPlaces = 3, kSegmentTable = 4, kGamma = 5,
                   kBeta = 6, kMask = 7, kPlaceIds = 8;
  for (const size_t i : {kWords, kPlaces, kGamma, kBeta}) {
    if (!c.has(i)) return c.fail("operand {} is missing", i);
  }
  if (c.rank(kIds) != 2 || c.rank(kPlaces) != 2)
    return c.fail("input_ids of shape {} and position_embedding of shape {}, expected rank 2",
                  to_string(c.shape(kIds)), to_string(c.shape(kPlaces)));
  if (c.has(kSegments) != c.has(kSegmentTable))
    return c.fail("segment_ids and segment_embedding must be given together");
  const int64_t batch = c.shape(kIds)[0], length = c.shape(kIds)[1];
  if (!c.has(kPlaceIds) && c.shape(kPlaces)[0] < length)
    return c.fail("{} positions for sequences of {}", c.shape(kPlaces)[0], length);
  ValueId sum = rows(c, kWords, kIds);
  sum = c.binary(
      "Add", sum,
      c.has(kPlaceIds) ? rows(c, kPlaces, kPlaceIds) : c.slice(c.input(kPlaces), 0, 0, length));
  if (c.has(kSegments)) sum = c.binary("Add", sum, rows(c, kSegmentTable, kSegments));
  const float epsilon = c.attributes().number("epsilon", 1e-12F);
  c.result(0, c.add("LayerNormalization", {sum, c.input(kGamma), c.input(kBeta)},
                    {{"axis", int64_t{-1}}, {"epsilon", epsilon}}));
  if (c.wants(1)) {
    ValueId count = uniform(c, DType::kI32, {batch}, 0);
    if (c.has(kMask)) {
      const ValueId seen = c.binary("Equal", c.input(kMask), 1.0);
      count = c.reduce("ReduceSum", c.cast(seen, DType::kI32), {1}, false);
    }
    c.result(1, count);
  }
  c.result(2, sum);
  return ok_status();
}

// GroupNormalization and, with activation 1, SiLU. Channels stand last unless channels_last is 0.
Status normalize_groups(ExpandContext& c, ValueId x) {
  const Attributes& a = c.attributes();
  const int64_t rank = c.rank_of(x), activation = a.integer("activation", 0);
  const bool last = a.integer("channels_last", 1) != 0;
  if (rank < 3) return c.fail("data of shape {}", to_string(c.shape_of(x)));
  if (activation != 0 && activation != 1)
    return c.fail("activation is {}, expected 0 (none) or 1 (SiLU)", activation);
  if (last) x = channels_second(c, x, rank);
  ValueId y =
      c.add("GroupNormalization", {x, c.input(1), c.input(2)},
            {{"num_groups", a.integer("groups", 0)}, {"epsilon", a.number("epsilon", 1e-5F)}});
  if (activation == 1) y = c.add("Swish", {y});
  c.result(0, last ? channels_last(c, y, rank) : y);
  return ok_status();
}

Status expand_group_norm(ExpandContext& c) { return normalize_groups(c, c.input(0)); }

// GroupNorm of X + skip + bias, where the skip may have one value per image and channel.
Status expand_skip_group_norm(ExpandContext& c) {
  const Shape& x = c.shape(0);
  ValueId skip = c.input(3);
  if (c.rank(3) == 2 && x.size() > 2) {
    const bool last = c.attributes().integer("channels_last", 1) != 0;
    Shape apart(x.size(), 1);
    apart[0] = c.shape(3)[0];
    apart[last ? x.size() - 1 : 1] = c.shape(3)[1];
    skip = c.reshape(skip, apart);
  }
  if (broadcast(x, c.shape_of(skip)) != x)
    return c.fail("skip of shape {} for data of shape {}", to_string(c.shape(3)), to_string(x));
  ValueId sum = c.binary("Add", c.input(0), skip);
  if (c.has(4)) sum = c.binary("Add", sum, c.input(4));
  c.result(1, sum);
  return normalize_groups(c, sum);
}

}  // namespace

std::span<const Op> microsoft_norm_ops() {
  static const Op ops[] = {
      expanded_op("SimplifiedLayerNormalization", 1, {2, 2, 2}, "axis:i epsilon:f stash_type:i",
                  expand_simplified_layer_norm),
      expanded_op("com.microsoft.SkipLayerNormalization", 1, {3, 5, 4}, "epsilon:f",
                  expand_skip_layer_norm),
      expanded_op("com.microsoft.SkipSimplifiedLayerNormalization", 1, {3, 4, 4}, "epsilon:f",
                  expand_skip_rms_norm),
      expanded_op("com.microsoft.EmbedLayerNormalization", 1, {1, 9, 3},
                  "epsilon:f mask_index_type:i", expand_embed_layer_norm),
      expanded_op("com.microsoft.GroupNorm", 1, {3, 3, 1},
                  "activation:i channels_last:i epsilon:f groups:i", expand_group_norm),
      expanded_op("com.microsoft.SkipGroupNorm", 1, {4, 5, 2},
                  "activation:i channels_last:i epsilon:f groups:i", expand_skip_group_norm),
  };
  return ops;
}

}  // namespace hone::graph
