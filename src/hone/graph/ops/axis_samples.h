// graph/ops/axis_samples.h - sums along one axis by tables, for bodies of extern stages: result o
// is the sum over taps k of data[index[o, k]] * weight[o, k].
#pragma once

#include "hone/graph/ops/indices.h"

namespace hone::graph {

class AxisSamples {
 public:
  static constexpr int64_t kFewTaps = 4;  // largest number of taps for which sums are unrolled

  // Operand i of the node has the index [o, k]. If weights are not 1, operand i + 1 has them, [o, k
  // + 1], and its last column is added. The data has `extent` elements along the axis.
  AxisSamples(EmitContext& c, size_t i, int64_t extent);
  [[nodiscard]] int64_t taps() const { return taps_; }
  [[nodiscard]] int64_t results() const { return results_; }
  [[nodiscard]] int64_t extent() const { return extent_; }
  // Returns the least and greatest position that results begin .. end read; the whole axis if the
  // index is not known.
  [[nodiscard]] std::pair<int64_t, int64_t> span(int64_t begin, int64_t end) const;

  // Returns the element at a position along the axis.
  using Element = std::function<ir::Expr(const ir::Expr& place)>;
  // Returns the position in the data for a position in the table.
  using Moved = std::function<ir::Expr(const ir::Expr& place)>;
  using Sum = std::function<ir::Expr(const Element& element)>;
  // Passes the sum of result o to `body`. Positions and weights are read once, before it.
  [[nodiscard]] ir::Stmt at(const ir::Expr& o, const Moved& moved,
                            const std::function<std::vector<ir::Stmt>(const Sum& sum)>& body) const;
  // Both return a part of a single tap: the position of its element, and its weight.
  [[nodiscard]] ir::Expr place(const ir::Expr& o, const ir::Expr& k) const;
  [[nodiscard]] ir::Expr weight(const ir::Expr& o, const ir::Expr& k) const;
  [[nodiscard]] ir::Expr added(const ir::Expr& o) const { return weight(o, ir::constant(taps_)); }

  // Computes all results of rows whose elements are contiguous, in vectors of results. Where the
  // index allows it, taps are selected from the few registers that hold their elements. `rows` runs
  // its argument for each row.
  using Rows = std::function<ir::Stmt(std::vector<ir::Stmt> body)>;
  using Store = std::function<ir::Stmt(const ir::Expr& o, const ir::Expr& value)>;
  [[nodiscard]] std::vector<ir::Stmt> across(const Rows& rows, const Element& element,
                                             const Store& store) const;

 private:
  struct Windows;
  class WindowSums;
  [[nodiscard]] bool make_windows(Windows& windows) const;

  EmitContext& c_;
  size_t operand_;
  int64_t extent_, taps_, results_;
  bool weighted_, adds_ = false;
  const Tensor* index_ = nullptr;  // null if the index is not known
  const Tensor* weights_ = nullptr;
};

// Makes loops around a body, the innermost of which is vectorized.
[[nodiscard]] ir::Stmt vector_loops(const std::vector<compute::Axis>& axes,
                                    std::vector<ir::Stmt> body);

}  // namespace hone::graph
