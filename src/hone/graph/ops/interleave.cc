// hone.Interleave: a value of which every operand is every steps[d]-th element along dimension d. A
// view: the operands are written where they lie in it (assign_storage).
#include <algorithm>
#include <cstring>
#include <numeric>

#include "hone/graph/ops/movement.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

Status infer_interleave(InferContext& c) {
  const Shape steps = c.attributes().integers("steps");
  const auto operands = static_cast<int64_t>(c.num_inputs());
  bool fits = true;
  int64_t count = 1;
  for (const int64_t step : steps) {
    fits = fits && step >= 1 && step <= operands && count <= operands;
    count = fits ? count * step : 0;
  }
  for (int64_t k = 0; k < operands; ++k)
    fits = fits && c.has(static_cast<size_t>(k)) &&
           c.rank(static_cast<size_t>(k)) == static_cast<int64_t>(steps.size());
  if (!fits || count != operands)
    return c.fail("{} operands for steps {}", operands, to_string(steps));
  const std::vector<PartPlace> parts = interleaved_parts(c.node());
  // The first of those that differ in one dimension only say how long it is.
  Shape shape(steps.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    for (size_t k = 0; k < parts.size(); ++k) {
      const Shape& at = parts[k].start;
      const bool first = std::count(at.begin(), at.end(), 0) + 1 >= c.rank(0) &&
                         std::accumulate(at.begin(), at.end(), int64_t{0}) == at[d];
      if (first) shape[d] += c.shape(k)[d];
    }
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    Shape own;
    for (size_t d = 0; d < shape.size(); ++d)
      own.push_back((shape[d] - parts[k].start[d] + steps[d] - 1) / steps[d]);
    if (c.shape(k) != own || c.dtype(k) != c.dtype(0))
      return c.fail("operand {} of shape {}, expected {}", k, to_string(c.shape(k)),
                    to_string(own));
  }
  return c.set(0, c.dtype(0), std::move(shape));
}

Result<std::vector<Tensor>> fold_interleave(const Graph& graph, const Node& node) {
  Tensor whole(graph.value(node.outputs[0]).dtype, graph.value(node.outputs[0]).shape);
  const auto width = static_cast<size_t>(dtype_bytes(whole.dtype()));
  const std::vector<PartPlace> parts = interleaved_parts(node);
  for (size_t k = 0; k < parts.size(); ++k) {
    const Tensor& from = *graph.value(node.inputs[k]).constant;
    for (int64_t i = 0; i < from.size(); ++i) {
      int64_t rest = i, to = 0, below = 1;
      for (size_t d = whole.shape().size(); d-- > 0;) {
        to += (parts[k].start[d] + rest % from.shape()[d] * parts[k].step[d]) * below;
        rest /= from.shape()[d];
        below *= whole.shape()[d];
      }
      std::memcpy(static_cast<char*>(whole.data()) + static_cast<size_t>(to) * width,
                  static_cast<const char*>(from.data()) + static_cast<size_t>(i) * width, width);
    }
  }
  return std::vector<Tensor>{std::move(whole)};
}

bool like_operands(const Graph&, const Node& node, const std::vector<bool>& known) {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId in) { return known[static_cast<size_t>(in)]; });
}

}  // namespace

std::vector<PartPlace> interleaved_parts(const Node& node) {
  const Shape steps = node.attributes.integers("steps");
  std::vector<PartPlace> parts = {{{}, steps}};
  for (const int64_t step : steps) {
    std::vector<PartPlace> more;
    for (const PartPlace& before : parts) {
      for (int64_t at = 0; at < step; ++at) {
        more.push_back(before);
        more.back().start.push_back(at);
      }
    }
    parts = std::move(more);
  }
  return parts;
}

std::span<const Op> interleave_ops() {
  static const Op ops[] = {
      {.name = "hone.Interleave",
       .min_inputs = 2,
       .max_inputs = 1 << 16,
       .kind = Kind::kView,
       .layout = Layout::kFollow,
       .attributes = "steps:is",
       .infer = infer_interleave,
       .fold = fold_interleave,
       .non_negative = like_operands},
  };
  return ops;
}

}  // namespace hone::graph
