// graph/ops/top_k.h - the first k elements of a row, in order, for bodies of extern stages. It
// finds a bound that few elements reach from the best elements of groups, packs the positions of
// those elements, and sorts these few by their keys. NaN counts as greater than all numbers. All of
// this is vectorized.
#pragma once

#include "hone/graph/ops/sort_pairs.h"

namespace hone::graph {

// Returns element r of the row.
using RowElement = std::function<ir::Expr(const ir::Expr& r)>;

class TopK {
 public:
  // Selects the largest or the least k of `extent` elements, 0 <= k <= extent.
  TopK(DType element, int64_t extent, int64_t k, bool largest);
  // Finds the elements; place() is valid in `then`.
  [[nodiscard]] ir::Stmt find(const RowElement& element, std::vector<ir::Stmt> then) const;
  // Returns the position in the row of the element that comes o-th.
  [[nodiscard]] ir::Expr place(const ir::Expr& o) const;

 private:
  [[nodiscard]] ir::Stmt sort_all(const RowElement& element) const;
  [[nodiscard]] std::vector<ir::Stmt> take_all(const RowElement& element) const;
  [[nodiscard]] std::vector<ir::Stmt> take_candidates(const RowElement& element) const;
  [[nodiscard]] ir::Stmt bound_by_groups() const;
  [[nodiscard]] ir::Stmt narrow(const ir::BufferPtr& keys, const ir::Expr& vectors,
                                int64_t steps) const;
  [[nodiscard]] ir::Stmt rank(const ir::BufferPtr& keys, const ir::Expr& count,
                              const ir::BufferPtr& ranks) const;
  [[nodiscard]] std::vector<ir::Stmt> order_few() const;
  [[nodiscard]] std::vector<ir::Stmt> order_many() const;
  [[nodiscard]] ir::Expr key_of(const RowElement& element, const ir::Expr& r) const;

  [[nodiscard]] ir::Expr sort_key_of(const ir::Expr& value) const;

  // Returns whether a value is at least as good as another one.
  [[nodiscard]] ir::Expr reaches(const ir::Expr& value, const ir::Expr& other) const;

  int64_t extent_, k_, groups_;
  bool largest_;
  DType key_, number_;  // types of keys and of positions
  // Per group: its best element, the key of that, and its rank.
  ir::BufferPtr best_, least_, ranks_;
  // Candidates in their order, and those equal to the bound.
  ir::BufferPtr found_key_, found_place_, equal_;
  ir::BufferPtr list_;
  Local bound_, found_, before_, equals_, reached_, low_, high_, middle_;
  SortPairs sorted_;
};

}  // namespace hone::graph
