// graph/ops/taken_branch.h - an If whose condition is known at run time only, so that a run takes
// the steps of one branch and leaves out the others: two loops of at most one turn each
// (hone.Loop).
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// Builds the node's results. With `may_leave_out`, a branch that cannot be built, as its shapes
// contradict each other, is kept out: a run that takes it fails with the message of its fault. It
// is an error, and nothing is built, if that goes for both, or if their results do not go together.
[[nodiscard]] Status expand_taken_branch(ExpandContext& c, const SubgraphBody& then_body,
                                         const SubgraphBody& else_body, bool may_leave_out);

// Returns the number of operations of nodes, about: what leaving them out saves.
[[nodiscard]] double operations_of(const Graph& graph, const std::vector<Node>& nodes);

// x with zeros behind it, up to `shape`, and without extents.
[[nodiscard]] ValueId grown(ExpandContext& c, ValueId x, const Shape& shape);

}  // namespace hone::graph
