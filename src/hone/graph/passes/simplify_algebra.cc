#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/simplify_rules.h"

namespace hone::graph {

Status simplify_algebra(Graph& graph) {
  std::vector<Rule> rules;
  for (const auto family : {movement_rules(), scalar_rules(), transpose_rules(), reshape_rules()})
    rules.insert(rules.end(), family.begin(), family.end());
  return rewrite(graph, rules);
}

}  // namespace hone::graph
