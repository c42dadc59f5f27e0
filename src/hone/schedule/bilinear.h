// schedule/bilinear.h - the parts that Winograd's and Strassen's steps share, which exchange
// products for sums (internal to schedule). A stage that sums products of data and constant weights
// becomes
//   stage.u  sums of weights with known factors (constant: runs at compile time)
//   stage.v  sums of data
//   stage.m  sums of their products: a matrix product for each point of the algorithm
//   stage    sums of those
#pragma once

#include <functional>

#include "hone/schedule/state.h"

namespace hone::schedule {

// A sum over the reduce axes of data * weight.
struct Factors {
  ir::Expr data, weight;  // the weight is a load of a constant, maybe one of a half type
  compute::Access data_access, weight_access;
};
[[nodiscard]] std::optional<Factors> product_of(const State& state, const StageInfo& info);
// Returns the factors if other stages may replace the stage: it is the only writer of its buffer,
// which is no param.
[[nodiscard]] std::optional<Factors> factors_of(const State& state, const StageInfo& info);
// Returns the axis of each dimension of the output buffer; empty if the write is no permutation.
[[nodiscard]] std::vector<int> written_axes(const StageInfo& info);

// Makes a row-major matrix whose values the compiler knows.
[[nodiscard]] ir::BufferPtr known_matrix(const std::string& name, int64_t rows, int64_t columns,
                                         const std::vector<double>& values);
// Returns an element of a buffer in float32.
[[nodiscard]] ir::Expr load_wide(const ir::BufferPtr& buffer, std::vector<ir::Expr> at);
// Returns the sum over t of matrix[row, t] * value(t).
[[nodiscard]] ir::Expr combine(const ir::BufferPtr& matrix, const ir::Expr& row,
                               const std::function<ir::Expr(int64_t)>& value);

// The stages that replace one, in topological order.
class NewStages {
 public:
  explicit NewStages(const StageInfo& of) : of_(of) {}

  // Adds a pointwise stage with this suffix, whose buffer has the axes as dimensions. The stage
  // rounds its value, of float32, to the type of the buffer.
  ir::BufferPtr add(const char* suffix, const std::vector<compute::Axis>& axes, ir::Expr value,
                    DType dtype = DType::kF32);
  // Adds a pointwise stage that writes to the coordinates `write` of its buffer.
  ir::BufferPtr add(const char* suffix, std::vector<compute::Axis> axes,
                    const std::vector<int64_t>& shape, std::vector<ir::Expr> write, ir::Expr value,
                    DType dtype = DType::kF32);
  // Adds the stage ".m", whose buffer has the axes as dimensions.
  ir::BufferPtr add_products(std::vector<compute::Axis> axes, std::vector<compute::Axis> reduce,
                             const ir::Expr& product);
  // Adds the last stage under the name of the replaced one. `coordinates` and `extents` are what
  // the replaced stage's axes become; the buffer has them in the order in which it had the axes.
  void add_last(std::vector<compute::Axis> axes, const std::vector<ir::Expr>& coordinates,
                const std::vector<int64_t>& extents, ir::Expr value);
  // Replaces the stage by these.
  [[nodiscard]] Status replace(State& state, int index);

 private:
  const StageInfo& of_;
  std::vector<compute::Stage> stages_;
};

}  // namespace hone::schedule
