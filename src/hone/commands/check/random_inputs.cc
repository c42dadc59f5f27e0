#include "hone/commands/check/random_inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "hone/base/hash.h"
#include "hone/base/rng.h"
#include "hone/commands/check/value_kinds.h"
#include "hone/graph/graph.h"

namespace hone {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

// The most turns of a loop whose number of turns is an input: several, so that the last one differs
// from the first.
constexpr int64_t kMostTurns = 4;

// Results hold elements of their operands, none changed.
bool only_moves(const Node& node) {
  static const std::set<std::string_view> types = {
      "Identity",        "Reshape",      "Squeeze",   "Unsqueeze",
      "Flatten",         "Transpose",    "Slice",     "Split",
      "Concat",          "Expand",       "Tile",      "Cast",
      "CastLike",        "Compress",     "hone.Copy", "hone.Hold",
      "hone.Interleave", "hone.Compact", "Dropout"};
  return types.contains(node.type);
}

int64_t extent_of(const graph::Graph& graph, ValueId id, int64_t axis) {
  const Shape& shape = graph.value(id).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? shape[static_cast<size_t>(axis)] : 1;
}

// If operand k of a node is an index: what it must be below.
std::optional<int64_t> index_limit(const graph::Graph& graph, const Node& node, size_t k) {
  const bool scatters = node.type == "ScatterElements" || node.type == "Scatter";
  if (k == 1 && (node.type == "Gather" || node.type == "GatherElements" || scatters))
    return extent_of(graph, node.inputs[0], node.attributes.integer("axis", 0));
  if (k == 1 && (node.type == "GatherND" || node.type == "ScatterND")) {
    const int64_t batch = node.attributes.integer("batch_dims", 0);
    const Shape& shape = graph.value(node.inputs[0]).shape;
    const int64_t indexed = extent_of(graph, node.inputs[1], -1);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t d = batch; d < batch + indexed; ++d)
      least = std::min(least, extent_of(graph, node.inputs[0], d));
    return shape.empty() ? 1 : least;
  }
  if (k == 0 && node.loop != nullptr) return kMostTurns + 1;
  if (k == 0 && node.type == "OneHot") {
    const auto& depth = graph.value(node.inputs[1]).constant;
    return depth && depth->size() > 0 ? static_cast<int64_t>(depth->at(0)) : 1;
  }
  return std::nullopt;
}

// Where the elements of an input go.
struct Uses {
  std::optional<int64_t> limit;  // as they are, to where they are indices below this
  bool changed = false;          // ... and changed, to where they are indices
};

Uses follow(const graph::Graph& graph, ValueId input) {
  std::set<ValueId> same = {input}, changed;
  Uses uses;
  for (const Node& node : graph.nodes) {
    bool from_same = false, from_changed = false;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId in = node.inputs[k];
      if (in == kNoValue || (!same.contains(in) && !changed.contains(in))) continue;
      if (const std::optional<int64_t> limit = index_limit(graph, node, k)) {
        if (same.contains(in))
          uses.limit = std::min(uses.limit.value_or(*limit), *limit);
        else
          uses.changed = true;
        continue;
      }
      (same.contains(in) ? from_same : from_changed) = true;
    }
    if (!from_same && !from_changed) continue;
    for (const ValueId out : node.outputs) {
      if (out == kNoValue || is_float(graph.value(out).dtype)) continue;
      const bool moved = only_moves(node) || (node.type == "Gather" && from_same);
      (moved && !from_changed ? same : changed).insert(out);
    }
  }
  return uses;
}

IntegerRange range_of(const graph::Graph& graph, ValueId input) {
  const DType dtype = graph.value(input).dtype;
  if (is_real(dtype) || dtype == DType::kBool) return {};
  const Uses uses = follow(graph, input);
  if (uses.limit)
    return {0, uses.changed ? std::clamp<int64_t>(*uses.limit - 1, 0, 1)
                            : std::max<int64_t>(*uses.limit - 1, 0)};
  if (uses.changed) return {};
  if (dtype == DType::kU8) return {0, 255};
  if (dtype == DType::kI8) return {-128, 127};
  if (small_integer_bits(dtype) > 0) {
    const auto [low, high] = small_integer_range(dtype);
    return {low, high};
  }
  return {};
}

double draw_float(Rng& rng, Draw draw) {
  switch (draw) {
    case Draw::kNormal: return rng.normal();
    case Draw::kMagnitudes: {
      const double normal = rng.normal();
      return normal * std::pow(10, 3 * rng.uniform() - 2);
    }
    case Draw::kPositive: return rng.uniform();
  }
  return 0;
}

}  // namespace

Tensor random_input(DType dtype, const Shape& shape, uint64_t seed) {
  Tensor tensor(dtype, shape);
  Rng rng(seed);
  const bool real = is_real(dtype);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.set(i, real ? rng.normal() : static_cast<double>(rng.below(2)));
  return tensor;
}

std::vector<IntegerRange> integer_ranges(const graph::Graph& graph) {
  std::vector<IntegerRange> ranges;
  for (const ValueId input : graph.inputs) ranges.push_back(range_of(graph, input));
  return ranges;
}

std::vector<Tensor> draw_inputs(const graph::Graph& graph, const std::vector<IntegerRange>& ranges,
                                Draw draw, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const graph::Value& value = graph.value(graph.inputs[k]);
    Tensor tensor(value.dtype, value.shape);
    Rng rng(hash_combine(seed, k));
    const bool real = is_real(value.dtype);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.set(i, real ? draw_float(rng, draw)
                         : static_cast<double>(rng.between(ranges[k].low, ranges[k].high)));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace hone
