#include "hone/graph/inline_branch.h"

#include <fmt/format.h>

namespace hone::graph {

std::vector<ValueId> inline_branch(Graph& graph, const Node& holder, const SubgraphBody& branch,
                                   std::vector<Node>& nodes) {
  const auto name_of = [&](const std::string& local) {
    return fmt::format("{}/{}", holder.name, local);
  };
  std::vector<ValueId> values(branch.names.size(), kNoValue);
  const auto at = [&](int local) -> ValueId& { return values[static_cast<size_t>(local)]; };
  for (const auto& [local, operand] : branch.captures) at(local) = holder.inputs[operand];
  for (const auto& [local, tensor] : branch.constants)
    at(local) = graph.add_constant(name_of(branch.names[static_cast<size_t>(local)]), tensor);
  for (const Node& from : branch.nodes) {
    Node made = from;
    made.name = name_of(from.name);
    if (made.opset == 0) made.opset = holder.opset;
    for (ValueId& in : made.inputs) {
      if (in != kNoValue) in = at(in);
    }
    for (ValueId& out : made.outputs) {
      if (out == kNoValue) continue;
      const std::string name = name_of(branch.names[static_cast<size_t>(out)]);
      const ValueId value = graph.add_value(name, DType::kF32, {});
      at(out) = value;
      out = value;
    }
    nodes.push_back(std::move(made));
  }
  std::vector<ValueId> results;
  for (const int local : branch.outputs) results.push_back(at(local));
  return results;
}

}  // namespace hone::graph
