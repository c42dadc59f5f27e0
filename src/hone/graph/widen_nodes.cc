#include "hone/graph/widen_nodes.h"

#include "hone/graph/widener.h"

namespace hone::graph {

// The branch that is taken in all runs, or both, of whose results the condition chooses.
void Widener::inline_branches(Node& node) {
  const Node holder = std::move(node);
  const std::optional<bool> taken = known_condition(holder.inputs[0]);
  std::vector<std::vector<ValueId>> results;  // by the branch
  for (const char* name : {"then_branch", "else_branch"}) {
    if (taken && *taken != (name == std::string_view("then_branch"))) continue;
    const auto& branch = *holder.attributes.find<Subgraph>(name)->body;
    const size_t first = before_.size();
    results.push_back(inline_branch(raw_, holder, branch, before_));
    std::vector<std::pair<ValueId, bool>> used_if = holder.used_if;
    if (!taken) used_if.emplace_back(holder.inputs[0], name == std::string_view("then_branch"));
    for (size_t i = first; i < before_.size(); ++i) before_[i].used_if = used_if;
  }
  if (!taken) {
    raw_.warnings.push_back(fmt::format(
        "{}: node '{}' (If): both branches are computed, as one of them becomes other operators at "
        "other sizes; a condition that is known (--bind) leaves one out",
        raw_.file, holder.name));
  }
  std::vector<Node> chosen;
  for (size_t i = 0; i < holder.outputs.size(); ++i) {
    if (holder.outputs[i] == kNoValue) continue;
    chosen.push_back(taken ? made(holder, "Identity", {results[0][i]}, holder.outputs[i], {})
                           : made(holder, "hone.Choose",
                                  {holder.inputs[0], results[0][i], results[1][i]},
                                  holder.outputs[i], {}));
  }
  node = std::move(chosen.back());
  chosen.pop_back();
  std::move(chosen.begin(), chosen.end(), std::back_inserter(before_));
}

namespace {

// Returns the name of the operator that has a node's shapes only; null if there is none.
const char* shapes_only_type(const Node& node) {
  const WidenRule* const rule = widen_rule_of(node);
  return rule == nullptr ? nullptr : rule->with_shapes_only;
}

}  // namespace

// Returns whether a loop that a run repeats has other nodes in its body at other sizes.
bool Widener::has_other_bodies(const Node& node) const {
  const auto out = std::find_if(node.outputs.begin(), node.outputs.end(),
                                [](ValueId id) { return id != kNoValue; });
  if (node.loop == nullptr || out == node.outputs.end()) return false;
  return std::any_of(probes_.begin(), probes_.end(), [&](const SizeProbe& probe) {
    const Node* twin = probe.producer_of_twin(*out);
    return twin != nullptr && twin->loop != nullptr && !same_kind_inside(*node.loop, *twin->loop);
  });
}

// Loops that have other turns at other sizes are the same loop where they are not unrolled.
bool Widener::keep_loops() {
  if (raw_.keeps_loops) return false;
  raw_.keeps_loops = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                 [&](const Node& node) { return has_other_bodies(node); });
  if (raw_.keeps_loops) return true;
  raw_.keeps_loops = std::any_of(raw_.nodes.begin(), raw_.nodes.end(), [&](const Node& node) {
    const bool is_chosen = node.type == "If" && !known_condition(node.inputs[0]);
    if (node.type != "Loop" && node.type != "Scan" && !is_chosen) return false;
    return !is_made_alike(node);
  });
  return raw_.keeps_loops;
}

bool Widener::apply_rules(const std::function<bool(const Node&)>& may) {
  bool changed = false;
  std::vector<Node> nodes;
  for (Node& node : raw_.nodes) {
    const WidenRule* const rule = widen_rule_of(node);
    const bool by_data = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
      return in != kNoValue && graph_.value(in).extents != kNoValue;
    });
    if (rule != nullptr && !by_data && may(node)) changed = rule->apply(*this, node) || changed;
    std::move(before_.begin(), before_.end(), std::back_inserter(nodes));
    nodes.push_back(std::move(node));
    std::move(after_.begin(), after_.end(), std::back_inserter(nodes));
    before_.clear();
    after_.clear();
  }
  raw_.nodes = std::move(nodes);
  return changed;
}

bool Widener::run() {
  const bool kept = keep_loops();
  return apply_rules([](const Node&) { return true; }) || kept;
}

bool Widener::run_by_shapes() {
  return apply_rules([](const Node& node) { return shapes_only_type(node) != nullptr; });
}

bool widen_nodes(Graph& raw, const Graph& graph, const std::vector<SizeProbe>& probes) {
  return Widener(raw, graph, probes).run();
}

bool widen_by_shapes(Graph& raw, const Graph& graph, const std::vector<SizeProbe>& probes) {
  return Widener(raw, graph, probes).run_by_shapes();
}

std::optional<Graph> with_shapes_only(const Graph& raw) {
  if (std::none_of(raw.nodes.begin(), raw.nodes.end(), shapes_only_type)) return std::nullopt;
  Graph shapes = raw;
  for (Node& node : shapes.nodes) {
    if (const char* type = shapes_only_type(node)) node.op = find_op(type, kMaxOpset);
  }
  return shapes;
}

bool is_widening(const Node& node) {
  return node.type == "hone.Widen" || node.type == "hone.Narrow" || node.type == "hone.Extent";
}

}  // namespace hone::graph
