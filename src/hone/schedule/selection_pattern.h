// schedule/selection_pattern.h - reads from a body that selects the first elements of a row (top-k,
// sort) which these are, whatever algorithm the body uses.
#pragma once

#include <optional>

#include "hone/compute/dag.h"

namespace hone::schedule {

// The `count` elements with the least keys are selected of the `extent` ones of a row, in ascending
// order; of equal keys the element with the least number is first. `write` is a loop over the
// elements that were selected, in which the loads of `places` at the loop's variable are their
// numbers.
struct Selection {
  int64_t extent = 1, count = 1;
  ir::VarPtr element;  // stands for the number of an element in `key`
  ir::Expr key;        // an integer
  ir::Stmt write;
  ir::BufferPtr places;
};

// Reads the selection from the body of a stage whose op is "top_k": this op promises that the body
// is one. Returns nothing for other stages.
[[nodiscard]] std::optional<Selection> find_selection(const compute::Stage& stage);

}  // namespace hone::schedule
