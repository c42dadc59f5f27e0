#include "hone/graph/unread_labels.h"

#include <algorithm>
#include <set>

namespace hone::graph {
namespace {

bool has_text_labels(const Node& node) {
  return !node.attributes.get<std::vector<std::string>>("classlabels_strings", {}).empty() &&
         !node.outputs.empty() && node.outputs[0] != kNoValue;
}

// Returns the values that outputs of the graph need.
std::set<ValueId> needed_values(const Graph& graph) {
  std::set<ValueId> needed(graph.outputs.begin(), graph.outputs.end());
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool is_needed =
        std::ranges::any_of(node.outputs, [&](ValueId out) { return needed.contains(out); });
    if (is_needed) needed.insert(node.inputs.begin(), node.inputs.end());
  }
  return needed;
}

}  // namespace

void leave_out_unread_labels(Graph& graph) {
  if (std::ranges::none_of(graph.nodes, has_text_labels)) return;
  const std::set<ValueId> needed = needed_values(graph);
  std::set<ValueId> left_out;
  for (Node& node : graph.nodes) {
    if (!has_text_labels(node) || needed.contains(node.outputs[0])) continue;
    left_out.insert(node.outputs[0]);
    node.outputs[0] = kNoValue;
  }
  // Nodes that read them are not needed either, nor those that read what these compute.
  std::erase_if(graph.nodes, [&](const Node& node) {
    const bool reads =
        std::ranges::any_of(node.inputs, [&](ValueId in) { return left_out.contains(in); });
    if (reads) left_out.insert(node.outputs.begin(), node.outputs.end());
    left_out.erase(kNoValue);
    return reads;
  });
}

}  // namespace hone::graph
