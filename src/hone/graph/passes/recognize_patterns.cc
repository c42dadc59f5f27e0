#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/patterns.h"

namespace hone::graph {

Status recognize_patterns(Graph& graph) {
  std::vector<Rule> rules;
  for (const auto family : {activation_patterns(), norm_patterns()})
    rules.insert(rules.end(), family.begin(), family.end());
  return rewrite(graph, rules);
}

}  // namespace hone::graph
