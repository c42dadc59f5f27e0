// graph/widen_nodes.h - operators that have to be the same at all sizes of a run: those that become
// other operators at other sizes, as an LSTM or a loop with its steps does, and those whose results
// depend on data.
//
// In a model of ranges such a node gets its operands in their largest shapes, with elements behind
// those of the run that change nothing, and its results are cut to the extents of the run.
#pragma once

#include "hone/graph/size_probes.h"

namespace hone::graph {

// The parameters `graph`, with the largest shapes, and `probes` were inferred from `raw`. Returns
// whether it changed `raw`; the others have to be made again then.
[[nodiscard]] bool widen_nodes(Graph& raw, const Graph& graph,
                               const std::vector<SizeProbe>& probes);

// Does so for nodes alone for which the shapes of their operands are enough: both may have been
// inferred from with_shapes_only(raw).
[[nodiscard]] bool widen_by_shapes(Graph& raw, const Graph& graph,
                                   const std::vector<SizeProbe>& probes);
// Returns the graph with recurrent nets and transforms that have no more than the types and shapes
// of their results, as steps and waves are most of the work of inferring shapes; nullopt if it has
// no such nodes.
[[nodiscard]] std::optional<Graph> with_shapes_only(const Graph& raw);

// Returns whether a node stands between the sizes of a run and the largest ones. Rules for sizes
// replace these nodes.
[[nodiscard]] bool is_widening(const Node& node);

}  // namespace hone::graph
