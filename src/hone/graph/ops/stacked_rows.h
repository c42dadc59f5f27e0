// graph/ops/stacked_rows.h - the results of a loop that are made of one row in each turn. All rows
// of a run have one shape: a run in which they have others ends with an error.
#pragma once

#include <optional>

#include "hone/graph/extents.h"
#include "hone/graph/ops/loop_builder.h"

namespace hone::graph {

// Returns the shape that rows of a loop without turns would have: extents that depend on data are
// those that the body declares of this output, or 0, as ONNX Runtime has it. They are no more than
// a row may have, for which there is memory. The row is a value of `c`.
[[nodiscard]] Shape shape_of_no_row(const ExpandContext& c, const SubgraphBody& body, size_t output,
                                    ValueId row);

// Rows without a place along which they are stacked.
struct StackedRows {
  ValueId value = kNoValue;     // without extents
  std::vector<ExtentPart> row;  // the shape of the rows of a run that has any
};
// Stacks the rows of unrolled turns, of which there is one at least, along a new axis. A row is one
// that a run has if `is_there`, which is missing for those that all runs have, is true.
[[nodiscard]] Result<StackedRows> stack_rows(ExpandContext& c, const std::vector<ValueId>& rows,
                                             const std::vector<ValueId>& is_there, size_t axis);

// The rows of a loop that a run repeats.
class RepeatedRows {
 public:
  RepeatedRows(ExpandContext& c, LoopBuilder& loop) : c_(c), loop_(loop) {}

  // Adds what the body makes in each turn as its result of this number. It carries the extents of
  // rows, so all other carried values come before.
  Status add(const SubgraphBody& body, size_t output, ValueId row, bool reversed);
  [[nodiscard]] const std::vector<LoopRow>& rows() const { return rows_; }
  // Returns whether data decide the shape of the last row that was added.
  [[nodiscard]] bool is_checked() const { return next_.back() != kNoValue; }
  // Adds what the carried extents are in the next turn.
  void add_next(std::vector<ValueId>& next) const;
  // Returns the shape of the rows of result i, from the results of the loop.
  [[nodiscard]] std::vector<ExtentPart> shape(const LoopResults& made, size_t i) const;

 private:
  ExpandContext& c_;
  LoopBuilder& loop_;
  std::vector<LoopRow> rows_;
  // By row, the extents that are numbers, and what those are in the next turn that data decide.
  std::vector<std::vector<std::optional<int64_t>>> known_;
  std::vector<ValueId> next_;
};

}  // namespace hone::graph
