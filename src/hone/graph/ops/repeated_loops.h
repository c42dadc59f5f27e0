// graph/ops/repeated_loops.h - Loop and Scan as loops that a run repeats (hone.Loop), for numbers
// of turns that are known at run time only or too large to unroll.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

// Builds the node's results. It is an error (Code::kUnsupported) if its body is none that can be
// repeated, as it takes sequences or changes the shape of a value; nothing is built then.
// Checks that the body of a Loop makes all results of the node.
[[nodiscard]] Status check_loop_results(const ExpandContext& c, const SubgraphBody& body);
[[nodiscard]] Status repeat_loop(ExpandContext& c);
[[nodiscard]] Status repeat_scan(ExpandContext& c);

}  // namespace hone::graph
