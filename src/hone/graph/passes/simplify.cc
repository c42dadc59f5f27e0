// fold_constants, remove_identities, merge_pads.
#include <algorithm>

#include "hone/base/allocation.h"
#include "hone/graph/evaluate.h"
#include "hone/graph/node_names.h"
#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/ops/window.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

// The interpreter does some 50 million operations a second: what takes longer stays in the model.
constexpr int64_t kMaxFoldedElements = 1 << 22;

bool is_identity(const Graph& graph, const Node& node) {
  if (node.outputs[0] == kNoValue || !node.has_input(0)) return false;
  const Value& from = graph.value(node.inputs[0]);
  const Value& to = graph.value(node.outputs[0]);
  if (from.shape != to.shape || from.dtype != to.dtype) return false;
  if (node.type == "Cast") return true;
  if (node.type == "MaxPool" ||
      node.type == "AveragePool") {  // adaptive pooling that had nothing to do
    const Window window = window_of(graph, node);
    for (size_t d = 0; d < window.rank(); ++d) {
      if (window.kernel[d] != 1 || window.stride[d] != 1 || window.pad_low[d] != 0) return false;
    }
    return true;
  }
  if (node.type == "Concat") return node.inputs.size() == 1;
  if (node.type == "Pad") {
    // With the shape unchanged all pads are 0, but for a shift.
    const auto pads =
        InferContext(const_cast<Graph&>(graph), node).integers_or_attribute(1, "pads");
    return pads.ok() && pads->has_value() &&
           std::all_of((*pads)->begin(), (*pads)->end(), [](int64_t p) { return p == 0; });
  }
  if (node.type == "Transpose") {
    const Shape perm = node.attributes.integers("perm");
    return !perm.empty() && std::is_sorted(perm.begin(), perm.end());
  }
  return node.op->kind == Kind::kView;
}

}  // namespace

Status remove_identities(Graph& graph) {
  std::vector<Node> kept;
  std::vector<Node> nodes = std::move(graph.nodes);
  std::vector<ValueId> same(graph.values.size());
  for (size_t i = 0; i < same.size(); ++i) same[i] = static_cast<ValueId>(i);
  for (Node& node : nodes) {
    for (ValueId& in : node.inputs) {
      if (in != kNoValue) in = same[static_cast<size_t>(in)];
    }
    if (is_identity(graph, node)) {
      same[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
      ++graph.rules[node.type];
    } else {
      kept.push_back(std::move(node));
    }
  }
  graph.nodes = std::move(kept);
  for (ValueId& out : graph.outputs) out = same[static_cast<size_t>(out)];
  return ok_status();
}

Status fold_constants(Graph& graph) {
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    const bool moves = node.op->fold != nullptr && node.op->fold != evaluate_node;
    // hone.Compact's result has a shape that only the runtime knows, and a loop writes over that of
    // hone.Hold.
    bool foldable = (moves || node.op->emit != nullptr) && node.type != "hone.Compact" &&
                    node.type != "hone.Hold";
    for (const ValueId in : node.inputs) {
      foldable = foldable && (in == kNoValue ||
                              (graph.value(in).constant.has_value() &&
                               (moves || graph.value(in).constant->size() <= kMaxFoldedElements)));
    }
    // A contraction's cost is not bounded by its operands' sizes.
    foldable = foldable && node.op->kind != Kind::kContraction &&
               (moves || num_elements(graph.value(node.outputs[0]).shape) <= kMaxFoldedElements);
    if (!foldable || !may_fold(graph, node)) {
      kept.push_back(std::move(node));
      continue;
    }
    const AllocatesFor purpose(name_and_type(node));
    const Result<std::vector<Tensor>> results =
        node.op->fold != nullptr ? node.op->fold(graph, node) : evaluate_node(graph, node);
    if (results.status().code() == Code::kTimeout) {
      kept.push_back(std::move(node));
      continue;
    }
    HONE_RETURN_IF_ERROR(results.status());
    ++graph.rules[node.type];
    for (size_t i = 0; i < results->size() && i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) graph.value(node.outputs[i]).constant = (*results)[i];
    }
  }
  graph.nodes = std::move(kept);
  return ok_status();
}

Status merge_pads(Graph& graph) {
  const Uses uses(graph);
  for (Node& node : graph.nodes) {
    const bool convolves = node.type == "Conv";
    const bool averages =
        node.type == "AveragePool" && node.attributes.integer("ceil_mode", 0) == 0;
    if ((!convolves && !averages) || node.attributes.text("auto_pad", "NOTSET") != "NOTSET")
      continue;
    const int producer = uses.producer[static_cast<size_t>(node.inputs[0])];
    if (producer < 0 || graph.nodes[static_cast<size_t>(producer)].type != "Pad") continue;
    const Node& pad = graph.nodes[static_cast<size_t>(producer)];
    // The other modes repeat elements of the data.
    if (pad.attributes.text("mode", "constant") != "constant") continue;
    const auto given = InferContext(graph, pad).integers_or_attribute(1, "pads");
    const size_t rank = graph.value(pad.inputs[0]).shape.size();
    if (!given.ok() || !given->has_value() || (*given)->size() != 2 * rank || pad.has_input(3))
      continue;
    if (pad.attributes.number("value", 0) != 0) continue;
    if (pad.has_input(2)) {
      const auto& fill = graph.value(pad.inputs[2]).constant;
      if (!fill || fill->at(0) != 0) continue;
    }
    const Shape& added = **given;
    const bool spatial_only =
        added[0] == 0 && added[1] == 0 && added[rank] == 0 && added[rank + 1] == 0;
    const bool shrinks = std::any_of(added.begin(), added.end(), [](int64_t p) { return p < 0; });
    if (!spatial_only || shrinks) continue;
    Shape pads = node.attributes.integers("pads", Shape(2 * (rank - 2), 0));
    const bool own_pads = std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
    // Zeros of the Pad count in the mean; own padding would have to count likewise.
    if (averages && own_pads && node.attributes.integer("count_include_pad", 0) == 0) continue;
    if (averages) {
      bool small = true;  // a window must hold some element of the data
      for (size_t d = 0; d + 2 < rank; ++d) {
        const int64_t kernel = node.attributes.integers("kernel_shape")[d];
        small = small && pads[d] + added[d + 2] < kernel &&
                pads[rank - 2 + d] + added[rank + d + 2] < kernel;
      }
      if (!small) continue;
      node.attributes.set("count_include_pad", int64_t{1});
    }
    for (size_t d = 0; d + 2 < rank; ++d) {
      pads[d] += added[d + 2];
      pads[rank - 2 + d] += added[rank + d + 2];
    }
    node.attributes.set("pads", pads);
    node.inputs[0] = pad.inputs[0];
    ++graph.rules[node.type];
  }
  return ok_status();
}

}  // namespace hone::graph
