// graph/ops/top_of_row.h - the first k elements of a row, in order, for bodies of extern stages:
// a bound that few elements reach, found from the best elements of groups; a pass that puts the
// places of those side by side; and the order of these few by their keys. What is not a number is
// greater than all numbers. Works in vectors.
#pragma once

#include "hone/graph/ops/sort_pairs.h"

namespace hone::graph {

// A row's element number r.
using RowElement = std::function<ir::Expr(const ir::Expr& r)>;

class TopOfRow {
 public:
  // The largest or the least k of `extent` elements, 0 <= k <= extent.
  TopOfRow(DType element, int64_t extent, int64_t k, bool largest);
  // Finds them; place() holds in `then`.
  [[nodiscard]] ir::Stmt find(const RowElement& element, std::vector<ir::Stmt> then) const;
  // Where in the row the element is that comes o-th.
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

  // Whether a value is as good as a number.
  [[nodiscard]] ir::Expr reaches(const ir::Expr& value, const ir::Expr& other) const;

  int64_t extent_, k_, groups_;
  bool largest_;
  DType key_, number_;                  // of keys, of places
  ir::BufferPtr best_, least_, ranks_;  // of each group: its best element, that one's key
  ir::BufferPtr found_key_, found_place_, equal_;  // candidates in their order; those at the bound
  ir::BufferPtr list_;
  Local bound_, found_, before_, equals_, reached_, low_, high_, middle_;
  SortPairs sorted_;
};

}  // namespace hone::graph
