// graph/ops/scan_operands.h - the values that a Scan goes through, step by step.
#pragma once

#include "hone/graph/expand.h"

namespace hone::graph {

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
