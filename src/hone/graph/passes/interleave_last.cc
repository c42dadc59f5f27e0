// Elementwise operators move from behind a hone.Interleave to its operands: there they join the
// tasks that make these, and a BatchNormalization goes into their weights.
#include <algorithm>

#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

// Returns whether a constant is the same along all dimensions that are interleaved.
bool same_for_all_parts(const Value& value, const Shape& steps) {
  if (!value.constant || value.shape.size() > steps.size()) return false;
  const size_t missing = steps.size() - value.shape.size();
  for (size_t d = 0; d < value.shape.size(); ++d) {
    if (value.shape[d] != 1 && steps[d + missing] != 1) return false;
  }
  return true;
}

Result<bool> interleave_after(const RewriteSite& site) {
  const Node node = site.node();
  if (node.op->kind != Kind::kElementwise || node.op->emit == nullptr) return false;
  const Node* made = nullptr;
  size_t position = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Node* maker = node.inputs[i] == kNoValue ? nullptr : site.sole_maker(node.inputs[i]);
    if (maker == nullptr || maker->type != "hone.Interleave") continue;
    made = maker;
    position = i;
    break;
  }
  if (made == nullptr || site.operand(position).shape != site.result().shape) return false;
  const Node interleave = *made;
  const Shape steps = interleave.attributes.integers("steps");
  // Its other operands have one element per channel, dimension 1.
  const bool per_channel = node.type == "BatchNormalization";
  if (per_channel && (position != 0 || steps[1] != 1)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i == position || node.inputs[i] == kNoValue) continue;
    const Value& value = site.operand(i);
    if (per_channel ? !value.constant : !same_for_all_parts(value, steps)) return false;
  }
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    std::vector<ValueId> parts;
    for (const ValueId part : interleave.inputs) {
      std::vector<ValueId> operands = node.inputs;
      operands[position] = part;
      parts.push_back(c.add_like(node, operands));
    }
    return c.add_like(interleave, parts);
  }));
  return true;
}

}  // namespace

Status interleave_last(Graph& graph) {
  static constexpr Rule kRules[] = {{"interleave_after", interleave_after}};
  return rewrite(graph, kRules);
}

}  // namespace hone::graph
