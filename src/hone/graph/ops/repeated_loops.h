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

// One of the operands of a Scan through which its steps go, along an axis.
struct ScanOperand {
  ValueId value = kNoValue;
  int64_t axis = 0, direction = 0;
};
struct ScanOperands {
  std::vector<ValueId> states;
  std::vector<ScanOperand> scanned;
  int64_t turns = -1;        // at most
  ValueId count = kNoValue;  // how many a run has, an i64 [1], if data decides it
};
[[nodiscard]] Result<ScanOperands> scan_operands(ExpandContext& c, const SubgraphBody& body);
// Per scanned operand or result, an attribute's entry.
[[nodiscard]] Result<int64_t> scan_entry(const ExpandContext& c, const char* name, size_t i);

}  // namespace hone::graph
