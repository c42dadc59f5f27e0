#include <algorithm>
#include <cstdlib>

#include "hone/graph/loop_body.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

struct Pass {
  const char* name;
  Status (*run)(Graph&);
  enum class When : uint8_t { kUnlessSkipped, kAlways, kIfAsked } when = When::kUnlessSkipped;
  Status (*run_for)(Graph&, const PassOptions&) = nullptr;                 // instead of `run`
  Status (*run_with)(Graph&, const PassOptions&, HalfWeights&) = nullptr;  // instead of both
};
using When = Pass::When;

Status optimize_loops(Graph& graph, const PassOptions& options);

constexpr Pass kPasses[] = {
    {"remove_identities", remove_identities},
    {"fold_constants", fold_constants},
    {"widen_halves", nullptr, When::kUnlessSkipped, nullptr,
     widen_halves},  // before all that knows float32 only
    {"eliminate_common_subexpressions",
     eliminate_common_subexpressions},  // before patterns: their parts are then used by one node
    {"recognize_patterns", recognize_patterns},
    {"interleave_last", interleave_last},  // after recognize_patterns: activations are one node
    {"fold_batch_norm", fold_batch_norm},  // after fold_constants: needs constant parameters
    {"fold_scales", fold_scales},
    {"merge_parallel_products", merge_parallel_products, When::kIfAsked},
    {"simplify_algebra", simplify_algebra},  // after recognize_patterns: they know its forms
    {"fuse_attention", fuse_attention},      // after simplify_algebra: scales are products
    {"merge_pads", merge_pads},
    {"groups_inner", nullptr, When::kUnlessSkipped,
     groups_inner},  // after fold_batch_norm: weights are final
    {"flatten_to_conv",
     flatten_to_conv},  // after remove_identities: no Dropout between Flatten and Gemm
    {"narrow_weights", nullptr, When::kUnlessSkipped, nullptr,
     narrow_weights},                    // after all that changes weights
    {"exact_products", exact_products},  // after narrow_weights: needs weights of 8 or 16 bits
    {"spread_trees", nullptr, When::kAlways, spread_trees},
    {"keep_small_rows", keep_small_rows},  // after all that makes products
    {"optimize_loops", nullptr, When::kAlways,
     optimize_loops},  // after fold_constants: constants move into the bodies
    {"assign_layouts", nullptr, When::kAlways, assign_layouts},
    {"assign_storage", assign_storage, When::kAlways},  // last: what lies where is final
};

Status run(Graph& graph, const Pass& pass, const PassOptions& options, HalfWeights& weights) {
  if (pass.run_with != nullptr) return pass.run_with(graph, options, weights);
  return pass.run_for != nullptr ? pass.run_for(graph, options) : pass.run(graph);
}

Status run_pass(Graph& graph, const Pass& pass, const PassOptions& options, HalfWeights& weights) {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::count(list.begin(), list.end(), pass.name) > 0;
  };
  const bool asked = pass.when != When::kIfAsked || names(options.also);
  const bool skipped = names(options.skip) || !asked;
  if (skipped && pass.when != When::kAlways) return ok_status();
  const std::string before = options.on_change ? describe(graph) : "";
  graph.rules.clear();
  HONE_RETURN_IF_ERROR(run(graph, pass, options, weights));
  HONE_RETURN_IF_ERROR(sort_nodes(graph));
  remove_dead_nodes(graph);
  if (const Status status = verify(graph); !status.ok()) {
    return error(Code::kInternal, "after the pass {}: {}", pass.name, status.message());
  }
  if (options.after_pass) options.after_pass(pass.name, graph);
  if (options.on_change) {
    std::string after = describe(graph);
    if (after != before) options.on_change(pass.name, after, graph.rules);
  }
  return ok_status();
}

// Makes constants of what a loop captures and is one: it is then no operand any more.
void move_constants_into(Graph& graph, const Uses& uses, Node& node, LoopBody& loop) {
  std::vector<ValueId> operands, inputs = {loop.graph.inputs[0]};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId operand = node.inputs[i];
    const ValueId inner = i == 0 ? kNoValue : loop.graph.inputs[i];
    const Node* hold =
        i > loop.carried
            ? &graph.nodes[static_cast<size_t>(uses.producer[static_cast<size_t>(operand)])]
            : nullptr;
    if (hold != nullptr && graph.value(hold->inputs[0]).constant) {
      loop.graph.value(inner).constant = graph.value(hold->inputs[0]).constant;
      ++graph.rules["constant"];
      continue;
    }
    operands.push_back(operand);
    if (i > 0) inputs.push_back(inner);
  }
  node.inputs = std::move(operands);
  loop.graph.inputs = std::move(inputs);
}

Status optimize_loops(Graph& graph, const PassOptions& options) {
  const Uses uses(graph);
  for (Node& node : graph.nodes) {
    if (node.loop == nullptr) continue;
    auto loop = std::make_shared<LoopBody>(*node.loop);
    move_constants_into(graph, uses, node, *loop);
    PassOptions inside = options;
    inside.on_change = nullptr;
    inside.after_pass = nullptr;
    HONE_RETURN_IF_ERROR(optimize(loop->graph, inside));
    node.loop = std::move(loop);
  }
  return ok_status();
}

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> optional_pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) {
    if (pass.when == When::kUnlessSkipped) names.emplace_back(pass.name);
  }
  return names;
}

Status optimize(Graph& graph, const PassOptions& options) {
  for (const auto* list : {&options.skip, &options.also}) {
    for (const std::string& name : *list) {
      auto names = pass_names();
      if (list == &options.skip)
        names.insert(names.end(), options.later.begin(), options.later.end());
      if (std::count(names.begin(), names.end(), name) == 0)
        return invalid("no pass is named '{}', expected one of {}", name, fmt::join(names, ", "));
    }
  }
  HalfWeights weights;
  for (const Pass& pass : kPasses) HONE_RETURN_IF_ERROR(run_pass(graph, pass, options, weights));
  return ok_status();
}

}  // namespace hone::graph
