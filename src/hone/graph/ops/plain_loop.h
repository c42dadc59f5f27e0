// graph/ops/plain_loop.h - a Loop in terms that a run can repeat (ops/repeated_loops.h): without
// sequences, and with a number of turns where its condition compares a counter with a number.
//
// Exporters write `for` as a Loop that counts for itself, and a list that a loop makes as a
// sequence that it carries. If all that a loop does to an empty sequence is to append one tensor in
// each turn, these are rows that it stacks.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

struct PlainLoop {
  Node node;  // its results are new values
  // By the results of the given node: the result of this one; and whether it holds the parts of a
  // sequence as rows.
  std::vector<size_t> results;
  std::vector<bool> stacks;
};

// Returns the node in such terms; nullopt if it is in them already, or cannot be. It may build
// nodes, for the number of turns.
[[nodiscard]] std::optional<PlainLoop> plain_loop(ExpandContext& c);

}  // namespace hone::graph
