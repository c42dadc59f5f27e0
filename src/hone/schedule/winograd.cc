#include "hone/schedule/winograd.h"

#include <algorithm>

#include "hone/schedule/bilinear.h"
#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Op;

// The s for which data and its guards depend on a spatial and a reduce axis only through
// s * axis + tap; 0 if there is none.
int64_t stride_along(const StageInfo& info, const Factors& f, int axis, int tap) {
  if (moves(f.weight_access, axis) || !moves(f.weight_access, tap)) return 0;
  int64_t stride = 0;
  for (const compute::AffineRow& row : f.data_access.index) {
    const int64_t a = row.coef[static_cast<size_t>(axis)], t = row.coef[static_cast<size_t>(tap)];
    if (a == 0 && t == 0) continue;
    if (a <= 0 || t != 1 || stride != 0) return 0;
    stride = a;
  }
  if (stride == 0) return 0;
  bool guards = true;
  const std::vector<ir::VarPtr> vars = compute::stage_vars(info.stage);
  ir::visit(f.data, [&](const Expr& e) {
    if (e->op != Op::kSelect) return;
    const auto conditions = compute::affine_guards(e->args[0], vars);
    guards = guards && conditions.has_value();
    for (size_t i = 0; guards && i < conditions->size(); ++i) {
      const compute::AffineRow& row = (*conditions)[i].row;
      guards = row.coef[static_cast<size_t>(axis)] == stride * row.coef[static_cast<size_t>(tap)];
    }
  });
  return guards ? stride : 0;
}

struct Dim {
  int axis, tap;  // positions in StageInfo::axes
  int64_t stride;
};

std::vector<Dim> find_dims(const StageInfo& info, const Factors& f) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < info.num_spatial(); ++axis) {
    for (int tap = info.num_spatial(); tap < static_cast<int>(info.axes.size()); ++tap) {
      const int64_t stride = stride_along(info, f, axis, tap);
      if (stride > 0 && info.axes[static_cast<size_t>(tap)].extent > stride)
        dims.push_back({axis, tap, stride});
    }
  }
  return dims;
}

class Rewrite {
 public:
  Rewrite(const StageInfo& info, const Factors& factors, const std::vector<Dim>& dims,
          int64_t outputs)
      : info_(info), f_(factors), stages_(info) {
    for (const Dim& dim : dims) {
      const Axis& axis = info_.axes[static_cast<size_t>(dim.axis)];
      const int64_t taps = info_.axes[static_cast<size_t>(dim.tap)].extent;
      const WinogradMatrices m = winograd_matrices(outputs, taps, dim.stride);
      const std::string& name = axis.var->name;
      dims_.push_back({dim, m.outputs, m.points, (axis.extent + m.outputs - 1) / m.outputs, name,
                       known_matrix(name + ".BT", m.points, m.points, m.data),
                       known_matrix(name + ".G", m.points, taps, m.weights),
                       known_matrix(name + ".AT", m.outputs, m.points, m.inverse)});
    }
  }

  NewStages run() {
    const ir::BufferPtr weights = transform_weights();
    const ir::BufferPtr data = transform_data();
    transform_back(multiply(weights, data));
    return std::move(stages_);
  }

 private:
  struct Transformed {
    Dim at;
    int64_t outputs, points, tiles;
    std::string name;
    ir::BufferPtr data, weights, inverse;
  };

  [[nodiscard]] bool is_transformed(int axis) const {
    return std::any_of(dims_.begin(), dims_.end(),
                       [&](const Transformed& d) { return d.at.axis == axis || d.at.tap == axis; });
  }
  [[nodiscard]] Axis axis_of(int position) const {
    const Axis& axis = info_.axes[static_cast<size_t>(position)];
    return compute::make_axis(axis.var->name, axis.extent);
  }
  Axis points(size_t d) const { return compute::make_axis(dims_[d].name + "_x", dims_[d].points); }
  Axis tiles(size_t d) const { return compute::make_axis(dims_[d].name + "_t", dims_[d].tiles); }

  // [x.., other axes of the weights.., reduce axes..]
  ir::BufferPtr transform_weights() {
    std::vector<Axis> rest;
    std::vector<int> positions;
    for (int a = 0; a < static_cast<int>(info_.axes.size()); ++a) {
      if (is_transformed(a)) continue;
      if (a < info_.num_spatial() && !moves(f_.weight_access, a)) continue;
      rest.push_back(axis_of(a));
      positions.push_back(a);
    }
    ir::BufferPtr last;
    for (size_t d = 0; d < dims_.size(); ++d) {
      // Points so far, taps still to go.
      std::vector<Axis> axes;
      for (size_t i = 0; i < dims_.size(); ++i)
        axes.push_back(i <= d ? points(i) : axis_of(dims_[i].at.tap));
      for (const Axis& axis : rest) axes.push_back(compute::make_axis(axis.var->name, axis.extent));
      const std::vector<Expr> at = compute::variables(axes);
      const Expr value = combine(dims_[d].weights, at[d], [&](int64_t t) {
        if (d > 0) {
          std::vector<Expr> from = at;
          from[d] = ir::constant(t);
          return ir::load(last, from);
        }
        ir::VarMap map;
        for (size_t i = 0; i < dims_.size(); ++i)
          map.push_back({var(dims_[i].at.tap), i == d ? ir::constant(t) : at[i]});
        for (size_t i = 0; i < positions.size(); ++i)
          map.push_back({var(positions[i]), at[dims_.size() + i]});
        return ir::substitute(f_.weight, map);
      });
      // What is kept has the type of the weights.
      const bool kept = d + 1 == dims_.size();
      last = stages_.add(kept ? ".u" : ".u1", axes, value,
                         kept ? f_.weight_access.buffer->dtype : DType::kF32);
    }
    return last;
  }

  [[nodiscard]] const ir::VarPtr& var(int axis) const {
    return info_.axes[static_cast<size_t>(axis)].var;
  }

  // [x.., spatial axes of the data with tiles for what slides.., reduce axes..]
  ir::BufferPtr transform_data() {
    std::vector<int> positions;
    for (int a = 0; a < static_cast<int>(info_.axes.size()); ++a) {
      const bool slides = a < info_.num_spatial() && is_transformed(a);
      if (slides || (!is_transformed(a) && moves(f_.data_access, a))) positions.push_back(a);
    }
    ir::BufferPtr last;
    for (size_t d = 0; d < dims_.size(); ++d) {
      std::vector<Axis> axes;
      for (size_t i = 0; i < dims_.size(); ++i)
        axes.push_back(i <= d ? points(i)
                              : compute::make_axis(dims_[i].name + "_r", dims_[i].points));
      for (const int a : positions) axes.push_back(tiled_axis(a));
      const std::vector<Expr> at = compute::variables(axes);
      const Expr value = combine(dims_[d].data, at[d], [&](int64_t t) {
        std::vector<Expr> from = at;
        from[d] = ir::constant(t);
        return d > 0 ? ir::load(last, from) : window_value(positions, from);
      });
      last = stages_.add(d + 1 == dims_.size() ? ".v" : ".v1", axes, value);
    }
    return last;
  }
  [[nodiscard]] Axis tiled_axis(int a) const {
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d].at.axis == a) return tiles(d);
    }
    return axis_of(a);
  }

  // The data at place `at` = [places in the windows.., positions..]; 0 outside of the buffer.
  [[nodiscard]] Expr window_value(const std::vector<int>& positions,
                                  const std::vector<Expr>& at) const {
    ir::VarMap map;
    for (size_t i = 0; i < positions.size(); ++i) {
      Expr value = at[dims_.size() + i];
      for (const Transformed& d : dims_) {
        if (d.at.axis == positions[i]) value = value * d.outputs;
      }
      map.push_back({var(positions[i]), value});
    }
    for (size_t d = 0; d < dims_.size(); ++d) map.push_back({var(dims_[d].at.tap), at[d]});
    Expr value = ir::substitute(f_.data, map);
    if (f_.data_access.guarded) return value;
    Expr inside;
    for (size_t row = 0; row < f_.data_access.index.size(); ++row) {
      const compute::AffineRow& index = f_.data_access.index[row];
      for (const Transformed& d : dims_) {
        if (index.coef[static_cast<size_t>(d.at.axis)] == 0) continue;
        const int64_t last =
            index.constant + (d.tiles - 1) * d.outputs * d.at.stride + d.points - 1;
        if (last < f_.data_access.buffer->shape[row]) continue;
        Expr load;
        ir::visit(f_.data, [&](const Expr& e) {
          if (e->op == Op::kLoad && e->buffer == f_.data_access.buffer) load = e;
        });
        const Expr test = ir::less(ir::substitute(load->args[row], map),
                                   ir::constant(f_.data_access.buffer->shape[row]));
        inside = inside ? ir::logical_and(inside, test) : test;
      }
    }
    return inside ? ir::select(inside, value, ir::constant_float(0)) : value;
  }

  // [x.., spatial axes of the stage with tiles for what slides..]
  ir::BufferPtr multiply(const ir::BufferPtr& weights, const ir::BufferPtr& data) {
    std::vector<Axis> axes, reduce;
    std::vector<Expr> xs;
    for (size_t d = 0; d < dims_.size(); ++d) {
      axes.push_back(points(d));
      xs.push_back(ir::variable(axes.back().var));
    }
    std::vector<Expr> w = xs, v = xs;
    for (int a = 0; a < static_cast<int>(info_.axes.size()); ++a) {
      const bool sums = a >= info_.num_spatial();
      if (sums && is_transformed(a)) continue;
      const Axis axis = tiled_axis(a);
      (sums ? reduce : axes).push_back(axis);
      const bool slides = !sums && is_transformed(a);
      if (slides || moves(f_.data_access, a)) v.push_back(ir::variable(axis.var));
      if (!slides && (sums || moves(f_.weight_access, a))) w.push_back(ir::variable(axis.var));
    }
    return stages_.add_products(std::move(axes), std::move(reduce),
                                ir::load(data, v) * load_wide(weights, w));
  }

  void transform_back(ir::BufferPtr last) {
    std::vector<Axis> spatial;
    for (int a = 0; a < info_.num_spatial(); ++a) spatial.push_back(tiled_axis(a));
    for (size_t d = 0; d + 1 < dims_.size(); ++d) {
      std::vector<Axis> axes;
      for (size_t i = 0; i < dims_.size(); ++i) axes.push_back(i <= d ? places(i) : points(i));
      for (const Axis& axis : spatial)
        axes.push_back(compute::make_axis(axis.var->name, axis.extent));
      const std::vector<Expr> at = compute::variables(axes);
      last = stages_.add(".y1", axes, combine(dims_[d].inverse, at[d], [&](int64_t t) {
                           std::vector<Expr> from = at;
                           from[d] = ir::constant(t);
                           return ir::load(last, from);
                         }));
    }
    std::vector<Axis> axes;
    std::vector<Expr> from(dims_.size()), coordinates;
    std::vector<int64_t> extents;
    for (int a = 0; a < info_.num_spatial(); ++a) {
      axes.push_back(tiled_axis(a));
      Expr coordinate = ir::variable(axes.back().var);
      from.push_back(coordinate);
      int64_t extent = info_.axes[static_cast<size_t>(a)].extent;
      for (size_t d = 0; d < dims_.size(); ++d) {
        if (dims_[d].at.axis != a) continue;
        axes.push_back(places(d));
        from[d] = ir::variable(axes.back().var);
        coordinate = coordinate * dims_[d].outputs + from[d];
        extent = dims_[d].tiles * dims_[d].outputs;
      }
      coordinates.push_back(coordinate);
      extents.push_back(extent);
    }
    const size_t d = dims_.size() - 1;
    Expr value = combine(dims_[d].inverse, from[d], [&](int64_t t) {
      std::vector<Expr> at = from;
      at[d] = ir::constant(t);
      return ir::load(last, at);
    });
    stages_.add_last(std::move(axes), coordinates, extents, std::move(value));
  }
  Axis places(size_t d) const { return compute::make_axis(dims_[d].name + "_i", dims_[d].outputs); }

  const StageInfo& info_;
  const Factors& f_;
  std::vector<Transformed> dims_;
  NewStages stages_;
};

}  // namespace

std::vector<WinogradDim> winograd_dims(const State& state, int stage) {
  const StageInfo& info = *state.stages[static_cast<size_t>(stage)].info;
  const auto factors = factors_of(state, info);
  if (!factors || written_axes(info).empty()) return {};
  std::vector<WinogradDim> dims;
  for (const Dim& dim : find_dims(info, *factors)) {
    const Axis &axis = info.axes[static_cast<size_t>(dim.axis)],
               &tap = info.axes[static_cast<size_t>(dim.tap)];
    dims.push_back({axis.var->name, tap.var->name, axis.extent, tap.extent, dim.stride});
  }
  // Without channels to sum over (a depthwise convolution) nothing is left of the products.
  const bool sums = info.stage.reduce.size() > dims.size();
  return sums && dims.size() <= 2 ? dims : std::vector<WinogradDim>();
}

Status apply_winograd(const Winograd& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  if (!untouched(state, index)) return invalid("{} is scheduled already", step.stage);
  const StageInfoPtr info = state.stages[static_cast<size_t>(index)].info;
  if (info->stage.plain_sums) return invalid("{} keeps its sums as they are written", step.stage);
  const std::vector<WinogradDim> found = winograd_dims(state, index);
  if (found.empty())
    return invalid("{} is no convolution over constant weights with more taps than its stride",
                   step.stage);
  for (const WinogradDim& dim : found) {
    if (!dim.allows(step.outputs))
      return invalid(
          "tiles of {} results of {} taps with stride {}, expected 2 or more and {} points at most "
          "of a phase",
          step.outputs, dim.taps, dim.stride, kMaxWinogradPoints);
  }
  const Factors factors = *factors_of(state, *info);
  return Rewrite(*info, factors, find_dims(*info, factors), step.outputs)
      .run()
      .replace(state, index);
}

}  // namespace hone::schedule
