// graph/follow_sizes.h - makes a graph of the largest shapes right at all sizes of its ranges: it
// finds what varies of each value (Value::forms), and changes nodes whose results would depend on
// elements that a run does not have.
//
// Elements beyond the sizes of a run are undefined. An operator that mixes elements along a
// dimension that varies gets an operand in which they are neutral: 0 in a sum, minus infinity in a
// maximum. Numbers that the import derived from the shapes (an index of the last token, the divisor
// of a mean) are computed at run time from the hidden input `hone.sizes` (Varying::sizes). What
// other sizes change is found by importing the model at some of them, so an operator without a rule
// is refused, and nothing wrong passes.
#pragma once

#include "hone/graph/size_probes.h"

namespace hone::graph {

// Returns the graph with nodes widened of which shapes tell that they have to be (widen_nodes.h),
// before any size is looked at closely: at each size, steps that are unrolled and waves that are
// computed are most of the work. Returns nullopt if there are none, or the model is not valid so.
[[nodiscard]] std::optional<Graph> widened_by_shapes(const Graph& raw, const InputSizes& sizes);

// The parameter `graph` was inferred from `raw`, with the largest shapes of its inputs; `ends` are
// the numbers of its values after each node of the file (infer.h). It gets Varying and the hidden
// input, which is its last.
[[nodiscard]] Status follow_sizes(Graph& graph, const Graph& raw, const std::vector<size_t>& ends,
                                  const InputSizes& sizes);

}  // namespace hone::graph
