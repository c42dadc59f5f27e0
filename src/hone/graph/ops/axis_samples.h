// graph/ops/axis_samples.h - sums along one axis by tables, for bodies of extern stages:
// result o is the sum over taps k of data[index[o, k]] * weight[o, k].
#pragma once

#include "hone/graph/ops/indices.h"

namespace hone::graph {

class AxisSamples {
 public:
  static constexpr int64_t kFewTaps = 4;  // as many as sums are written out for

  // Operand i of the node holds the index [o, k]; if the weights are not 1, operand i + 1 holds
  // them, [o, k + 1], whose last column is added. The data has `extent` elements along the axis.
  AxisSamples(EmitContext& c, size_t i, int64_t extent);
  [[nodiscard]] int64_t taps() const { return taps_; }
  [[nodiscard]] int64_t results() const { return results_; }
  [[nodiscard]] int64_t extent() const { return extent_; }
  // The least and greatest place that results begin .. end read; the whole axis if the index is not
  // known.
  [[nodiscard]] std::pair<int64_t, int64_t> span(int64_t begin, int64_t end) const;

  // The element at a place along the axis.
  using Element = std::function<ir::Expr(const ir::Expr& place)>;
  // Where the data really is that a place means.
  using Moved = std::function<ir::Expr(const ir::Expr& place)>;
  using Sum = std::function<ir::Expr(const Element& element)>;
  // What `body` does with the sum of result o; places and weights are read once, before it.
  [[nodiscard]] ir::Stmt at(const ir::Expr& o, const Moved& moved,
                            const std::function<std::vector<ir::Stmt>(const Sum& sum)>& body) const;
  // A tap alone: what `body` does with its element's place and its weight.
  [[nodiscard]] ir::Expr place(const ir::Expr& o, const ir::Expr& k) const;
  [[nodiscard]] ir::Expr weight(const ir::Expr& o, const ir::Expr& k) const;
  [[nodiscard]] ir::Expr added(const ir::Expr& o) const { return weight(o, ir::constant(taps_)); }

  // All results of rows whose elements lie side by side: vectors of results, whose taps are chosen
  // from the few registers that hold what they read, where the index allows it. `rows` runs its
  // argument for each row.
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
  const Tensor* index_ = nullptr;  // where they are known
  const Tensor* weights_ = nullptr;
};

// Loops around a body, the innermost one in vectors.
[[nodiscard]] ir::Stmt vector_loops(const std::vector<compute::Axis>& axes,
                                    std::vector<ir::Stmt> body);

}  // namespace hone::graph
