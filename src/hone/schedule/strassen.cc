#include "hone/schedule/strassen.h"

#include <algorithm>

#include "hone/schedule/bilinear.h"
#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using ir::Expr;

constexpr int64_t kProducts = 7, kQuarters = 4;
// By product: the quarters (row, sum), (sum, column) that it takes; by result: the products.
constexpr double kData[] = {1,  0, 0, 1,             // (d11 + d22)
                            0,  0, 1, 1,             // (d21 + d22)
                            1,  0, 0, 0,             // d11
                            0,  0, 0, 1,             // d22
                            1,  1, 0, 0,             // (d11 + d12)
                            -1, 0, 1, 0,             // (d21 - d11)
                            0,  1, 0, -1};           // (d12 - d22)
constexpr double kWeights[] = {1,  0, 0, 1,          // (w11 + w22)
                               1,  0, 0, 0,          // w11
                               0,  1, 0, -1,         // (w12 - w22)
                               -1, 0, 1, 0,          // (w21 - w11)
                               0,  0, 0, 1,          // w22
                               1,  1, 0, 0,          // (w11 + w12)
                               0,  0, 1, 1};         // (w21 + w22)
constexpr double kBack[] = {1, 0,  0, 1, -1, 0, 1,   // 11
                            0, 0,  1, 0, 1,  0, 0,   // 12
                            0, 1,  0, 1, 0,  0, 0,   // 21
                            1, -1, 1, 0, 0,  1, 0};  // 22

// Positions in StageInfo::axes.
struct Sides {
  int row, column, depth;
};

// The one axis that is summed over; -1 if there are several.
int depth_of(const StageInfo& info) {
  int depth = -1;
  for (int a = info.num_spatial(); a < static_cast<int>(info.axes.size()); ++a) {
    if (info.axes[static_cast<size_t>(a)].extent == 1) continue;
    if (depth >= 0) return -1;
    depth = a;
  }
  return depth;
}

std::vector<Sides> sides_of(const StageInfo& info, const Factors& f, int64_t lanes) {
  const std::vector<int> written = written_axes(info);
  const int depth = depth_of(info);
  if (written.empty() || depth < 0 || lanes < 1) return {};
  const auto extent = [&](int a) { return info.axes[static_cast<size_t>(a)].extent; };
  const int column = written.back();
  if (moves(f.data_access, column) || !moves(f.weight_access, column) ||
      extent(column) % (2 * lanes) != 0 || extent(depth) % 2 != 0 || !moves(f.data_access, depth) ||
      !moves(f.weight_access, depth))
    return {};
  std::vector<Sides> found;
  for (int a = 0; a < info.num_spatial(); ++a) {
    if (extent(a) > 1 && moves(f.data_access, a) && !moves(f.weight_access, a))
      found.push_back({a, column, depth});
  }
  return found;
}

class Rewrite {
 public:
  Rewrite(const StageInfo& info, const Factors& factors, const Sides& sides, int64_t lanes)
      : info_(info), f_(factors), sides_(sides), lanes_(lanes), stages_(info) {}

  NewStages run() {
    const ir::BufferPtr weights = combine_weights(halve_weights());
    const ir::BufferPtr data = combine_data();
    combine_products(multiply(weights, data));
    return std::move(stages_);
  }

 private:
  [[nodiscard]] const Axis& axis(int a) const { return info_.axes[static_cast<size_t>(a)]; }
  [[nodiscard]] const std::string& name(int a) const { return axis(a).var->name; }
  [[nodiscard]] int size() const { return static_cast<int>(info_.axes.size()); }
  [[nodiscard]] Axis product() const {
    return compute::make_axis(name(sides_.row) + "_x", kProducts);
  }
  // Pairs of rows; the last one of an odd number has one.
  [[nodiscard]] int64_t pairs() const { return (axis(sides_.row).extent + 1) / 2; }
  // An axis as it is in one of the seven products.
  [[nodiscard]] Axis halved(int a) const {
    if (a == sides_.row) return compute::make_axis(name(a), pairs());
    const bool half = a == sides_.column || a == sides_.depth;
    return compute::make_axis(name(a), axis(a).extent / (half ? 2 : 1));
  }
  // The axes that an operand moves with.
  [[nodiscard]] std::vector<int> axes_of(const compute::Access& access) const {
    std::vector<int> axes;
    for (int a = 0; a < size(); ++a) {
      if (moves(access, a)) axes.push_back(a);
    }
    return axes;
  }
  ir::BufferPtr matrix(const char* suffix, int64_t rows, int64_t columns,
                       std::span<const double> values) const {
    return known_matrix(name(sides_.row) + suffix, rows, columns,
                        std::vector<double>(values.begin(), values.end()));
  }

  // [half of the columns, axes of the weights, columns as in a half]
  ir::BufferPtr halve_weights() {
    const Axis half = compute::make_axis(name(sides_.column) + "_j", 2);
    std::vector<Axis> axes = {half};
    std::vector<Expr> write = {ir::variable(half.var)};
    std::vector<int64_t> shape = {2};
    ir::VarMap map;
    for (const int a : axes_of(f_.weight_access)) {
      if (a == sides_.column) continue;
      axes.push_back(compute::make_axis(name(a), axis(a).extent));
      write.push_back(ir::variable(axes.back().var));
      shape.push_back(axis(a).extent);
      map.push_back({axis(a).var, write.back()});
    }
    const int64_t extent = axis(sides_.column).extent;
    axes.push_back(compute::make_axis(name(sides_.column) + "_t", extent / (2 * lanes_)));
    const Expr pair = ir::variable(axes.back().var);
    axes.push_back(compute::make_axis(name(sides_.column), lanes_));
    const Expr lane = ir::variable(axes.back().var);
    write.push_back(pair * lanes_ + lane);
    shape.push_back(extent / 2);
    map.push_back({axis(sides_.column).var, pair * (2 * lanes_) + write[0] * lanes_ + lane});
    return stages_.add(".u1", std::move(axes), shape, std::move(write),
                       ir::substitute(f_.weight, map));
  }

  // [product, axes of the weights]
  ir::BufferPtr combine_weights(const ir::BufferPtr& halves) {
    std::vector<Axis> axes = {product()};
    std::vector<Expr> from = {nullptr};
    Expr column;
    size_t depth = 0;
    for (const int a : axes_of(f_.weight_access)) {
      axes.push_back(halved(a));
      const Expr at = ir::variable(axes.back().var);
      if (a == sides_.depth) depth = from.size();
      a == sides_.column ? column = at : from.emplace_back(at);
    }
    from.push_back(column);
    const ir::BufferPtr factors = matrix(".G", kProducts, kQuarters, kWeights);
    const Expr value = combine(factors, ir::variable(axes[0].var), [&](int64_t quarter) {
      std::vector<Expr> at = from;
      at[0] = ir::constant(quarter % 2);
      at[depth] = at[depth] + quarter / 2 * (axis(sides_.depth).extent / 2);
      return ir::load(halves, at);
    });
    return stages_.add(".u", axes, value, f_.weight_access.buffer->dtype);
  }

  // [product, axes of the data]
  ir::BufferPtr combine_data() {
    std::vector<Axis> axes = {product()};
    ir::VarMap map;
    Expr row, depth;
    for (const int a : axes_of(f_.data_access)) {
      axes.push_back(halved(a));
      const Expr at = ir::variable(axes.back().var);
      if (a == sides_.row) {
        row = at;
      } else if (a == sides_.depth) {
        depth = at;
      } else {
        map.push_back({axis(a).var, at});
      }
    }
    const ir::BufferPtr factors = matrix(".BT", kProducts, kQuarters, kData);
    const int64_t rows = axis(sides_.row).extent;
    const Expr value = combine(factors, ir::variable(axes[0].var), [&](int64_t quarter) {
      const Expr at = row * 2 + quarter / 2;
      ir::VarMap all = map;
      all.push_back({axis(sides_.row).var, at});
      all.push_back(
          {axis(sides_.depth).var, depth + quarter % 2 * (axis(sides_.depth).extent / 2)});
      const Expr found = ir::substitute(f_.data, all);
      if (rows % 2 == 0 || quarter < 2) return found;
      return ir::select(ir::less(at, ir::constant(rows)), found, ir::constant_float(0));
    });
    return stages_.add(".v", axes, value);
  }

  // [product, spatial axes]
  ir::BufferPtr multiply(const ir::BufferPtr& weights, const ir::BufferPtr& data) {
    std::vector<Axis> axes = {product()}, reduce;
    std::vector<Expr> w = {ir::variable(axes[0].var)}, v = w;
    for (int a = 0; a < size(); ++a) {
      const Axis half = halved(a);
      (a < info_.num_spatial() ? axes : reduce).push_back(half);
      if (moves(f_.weight_access, a)) w.push_back(ir::variable(half.var));
      if (moves(f_.data_access, a)) v.push_back(ir::variable(half.var));
    }
    return stages_.add_products(std::move(axes), std::move(reduce),
                                ir::load(data, v) * load_wide(weights, w));
  }

  void combine_products(const ir::BufferPtr& products) {
    std::vector<Axis> axes;
    std::vector<Expr> coordinates, from = {nullptr};
    std::vector<int64_t> extents;
    Expr quarter;
    const auto add = [&](const std::string& named, int64_t extent) {
      axes.push_back(compute::make_axis(named, extent));
      return ir::variable(axes.back().var);
    };
    Expr row, column;
    for (int a = 0; a < info_.num_spatial(); ++a) {
      const int64_t extent = axis(a).extent;
      extents.push_back(extent);
      if (a == sides_.row) {
        from.push_back(add(name(a), pairs()));
        extents.back() = 2 * pairs();
        row = add(name(a) + "_i", 2);
        coordinates.push_back(from.back() * 2 + row);
      } else if (a == sides_.column) {
        const Expr pair = add(name(a) + "_t", extent / (2 * lanes_));
        column = add(name(a) + "_j", 2);
        const Expr lane = add(name(a), lanes_);
        from.push_back(pair * lanes_ + lane);
        coordinates.push_back(pair * (2 * lanes_) + column * lanes_ + lane);
      } else {
        from.push_back(add(name(a), extent));
        coordinates.push_back(from.back());
      }
    }
    const ir::BufferPtr factors = matrix(".AT", kQuarters, kProducts, kBack);
    Expr value = combine(factors, row * 2 + column, [&](int64_t x) {
      std::vector<Expr> at = from;
      at[0] = ir::constant(x);
      return ir::load(products, at);
    });
    stages_.add_last(std::move(axes), coordinates, extents, std::move(value));
  }

  const StageInfo& info_;
  const Factors& f_;
  Sides sides_;
  int64_t lanes_;
  NewStages stages_;
};

}  // namespace

std::vector<Axis> strassen_rows(const State& state, int stage, int64_t lanes) {
  const StageInfo& info = *state.stages[static_cast<size_t>(stage)].info;
  const auto factors = factors_of(state, info);
  std::vector<Axis> rows;
  if (!factors) return rows;
  for (const Sides& sides : sides_of(info, *factors, lanes))
    rows.push_back(info.axes[static_cast<size_t>(sides.row)]);
  return rows;
}

Status apply_strassen(const Strassen& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  if (!untouched(state, index)) return invalid("{} is scheduled already", step.stage);
  const StageInfoPtr info = state.stages[static_cast<size_t>(index)].info;
  if (info->stage.plain_sums) return invalid("{} keeps its sums as they are written", step.stage);
  const auto factors = factors_of(state, *info);
  if (!factors) return invalid("{} is no product with constant weights", step.stage);
  for (const Sides& sides : sides_of(*info, *factors, step.lanes)) {
    if (info->axes[static_cast<size_t>(sides.row)].var->name == step.rows)
      return Rewrite(*info, *factors, sides, step.lanes).run().replace(state, index);
  }
  return invalid(
      "{} has no matrix product of several rows {} whose sum has halves and whose columns have "
      "pairs of {} lanes",
      step.stage, step.rows, step.lanes);
}

}  // namespace hone::schedule
