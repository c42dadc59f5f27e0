#include "hone/schedule/winograd.h"

#include <algorithm>
#include <functional>
#include <span>

#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Op;

// Coefficients of the product of (x - point), lowest power first.
std::vector<double> polynomial(std::span<const double> points) {
  std::vector<double> p = {1};
  for (const double point : points) {
    std::vector<double> next(p.size() + 1, 0);
    for (size_t i = 0; i < p.size(); ++i) {
      next[i + 1] += p[i];
      next[i] -= point * p[i];
    }
    p = std::move(next);
  }
  return p;
}

bool is_load(const Expr& e, const ir::BufferPtr& buffer) {
  return e->op == Op::kLoad && e->buffer == buffer;
}

// A convolution's factors: sum over the reduce axes of data * weight.
struct Factors {
  Expr data, weight;  // weight: a plain load of a constant
  compute::Access data_access, weight_access;
};

bool is_constant(const State& state, const ir::BufferPtr& buffer) {
  if (const ir::Param* param = state.find_param(buffer)) return param->role == ir::Role::kConstant;
  const StageList writers = state.writers(buffer);
  return !writers.empty() && std::all_of(writers.begin(), writers.end(), [&](int s) {
    return state.stages[static_cast<size_t>(s)].info->constant;
  });
}

std::optional<Factors> factors_of(const State& state, const StageInfo& info) {
  const compute::Stage& stage = info.stage;
  if (stage.is_extern() || stage.where || stage.outputs.size() != 1 || stage.reduce.empty())
    return std::nullopt;
  const compute::Output& output = stage.outputs[0];
  if (output.buffer->dtype != DType::kF32 || state.is_param(output.buffer) ||
      state.writers(output.buffer).size() != 1 || output.value->op != Op::kAdd)
    return std::nullopt;
  const int old = is_load(output.value->args[0], output.buffer) ? 0 : 1;
  const Expr& product = output.value->args[static_cast<size_t>(1 - old)];
  if (!is_load(output.value->args[static_cast<size_t>(old)], output.buffer) ||
      product->op != Op::kMul || output.identity->op != Op::kFloat ||
      output.identity->float_value != 0 || info.reads.size() != 2)
    return std::nullopt;
  for (const int side : {0, 1}) {
    const Expr& weight = product->args[static_cast<size_t>(side)];
    if (weight->op != Op::kLoad || !is_constant(state, weight->buffer)) continue;
    const bool first = info.reads[0].buffer == weight->buffer;
    const compute::Access& data = info.reads[first ? 1 : 0];
    if (data.buffer == weight->buffer || data.buffer->dtype != DType::kF32) return std::nullopt;
    return Factors{product->args[static_cast<size_t>(1 - side)], weight, data,
                   info.reads[first ? 0 : 1]};
  }
  return std::nullopt;
}

// The axis of each dimension of the output buffer; empty if the write is no permutation.
std::vector<int> written_axes(const StageInfo& info) {
  std::vector<int> axes;
  for (const compute::AffineRow& row : info.writes[0]) {
    int found = -1;
    for (size_t a = 0; a < row.coef.size(); ++a) {
      if (row.coef[a] == 0) continue;
      if (row.coef[a] != 1 || found >= 0) return {};
      found = static_cast<int>(a);
    }
    if (found < 0 || row.constant != 0 || std::count(axes.begin(), axes.end(), found) > 0)
      return {};
    axes.push_back(found);
  }
  return std::ssize(axes) == info.num_spatial() ? axes : std::vector<int>();
}

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

ir::BufferPtr known_matrix(const std::string& name, int64_t rows, int64_t columns,
                           const std::vector<double>& values) {
  auto buffer = std::make_shared<ir::Buffer>();
  buffer->name = name;
  buffer->shape = {rows, columns};
  buffer->values.assign(values.begin(), values.end());
  return buffer;
}

class Rewrite {
 public:
  Rewrite(const StageInfo& info, const Factors& factors, const std::vector<Dim>& dims,
          int64_t outputs)
      : info_(info), f_(factors) {
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

  // In topological order, the last one with the stage's own name.
  std::vector<compute::Stage> run() {
    const ir::BufferPtr weights = transform_weights();
    const ir::BufferPtr data = transform_data();
    transform_back(multiply(weights, data));
    return std::move(stages_);
  }
  [[nodiscard]] const ir::BufferPtr& result() const { return result_; }

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
  std::string stage_name(const char* suffix) const { return info_.stage.name + suffix; }

  // A pointwise stage whose buffer has the axes as dimensions.
  ir::BufferPtr add(const std::string& name, const std::vector<Axis>& axes, Expr value) {
    compute::Stage stage;
    stage.name = name;
    stage.axes = axes;
    std::vector<int64_t> shape;
    for (const Axis& axis : axes) shape.push_back(axis.extent);
    const ir::BufferPtr buffer = ir::make_buffer(name, DType::kF32, shape);
    stage.outputs.push_back(
        {buffer, compute::variables(axes), std::move(value), nullptr, nullptr, nullptr});
    stages_.push_back(std::move(stage));
    return buffer;
  }
  // sum over t of matrix[row, t] * value(t)
  static Expr combine(const ir::BufferPtr& matrix, const Expr& row,
                      const std::function<Expr(int64_t)>& value) {
    Expr sum;
    for (int64_t t = 0; t < matrix->shape[1]; ++t) {
      const Expr term = ir::load(matrix, {row, ir::constant(t)}) * value(t);
      sum = sum ? sum + term : term;
    }
    return sum;
  }

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
      last = add(stage_name(d + 1 == dims_.size() ? ".u" : ".u1"), axes, value);
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
      last = add(stage_name(d + 1 == dims_.size() ? ".v" : ".v1"), axes, value);
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
    compute::Stage stage;
    stage.name = stage_name(".m");
    std::vector<std::pair<int, Expr>> at;  // position -> value
    std::vector<Expr> xs;
    for (size_t d = 0; d < dims_.size(); ++d) {
      stage.axes.push_back(points(d));
      xs.push_back(ir::variable(stage.axes.back().var));
    }
    for (int a = 0; a < static_cast<int>(info_.axes.size()); ++a) {
      const bool reduce = a >= info_.num_spatial();
      if (reduce && is_transformed(a)) continue;
      const Axis axis = tiled_axis(a);
      (reduce ? stage.reduce : stage.axes).push_back(axis);
      at.emplace_back(a, ir::variable(axis.var));
    }
    std::vector<Expr> w = xs, v = xs, write = compute::variables(stage.axes);
    for (const auto& [a, value] : at) {
      const bool slides = a < info_.num_spatial() && is_transformed(a);
      if (slides || moves(f_.data_access, a)) v.push_back(value);
      if (!slides && (a >= info_.num_spatial() || moves(f_.weight_access, a))) w.push_back(value);
    }
    std::vector<int64_t> shape;
    for (const Axis& axis : stage.axes) shape.push_back(axis.extent);
    const ir::BufferPtr buffer = ir::make_buffer(stage.name, DType::kF32, shape);
    const ir::BufferPtr other = ir::make_buffer(stage.name + ".other", DType::kF32, shape);
    const Expr old = ir::load(buffer, write);
    stage.outputs.push_back({buffer, write, old + ir::load(data, v) * ir::load(weights, w),
                             ir::constant_float(0), old + ir::load(other, write), other});
    stages_.push_back(std::move(stage));
    return buffer;
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
      last = add(stage_name(".y1"), axes, combine(dims_[d].inverse, at[d], [&](int64_t t) {
                   std::vector<Expr> from = at;
                   from[d] = ir::constant(t);
                   return ir::load(last, from);
                 }));
    }
    compute::Stage stage;
    stage.name = info_.stage.name;
    stage.op = info_.stage.op;
    std::vector<Expr> from(dims_.size()), coordinates;
    std::vector<int64_t> extents;
    for (int a = 0; a < info_.num_spatial(); ++a) {
      stage.axes.push_back(tiled_axis(a));
      Expr coordinate = ir::variable(stage.axes.back().var);
      from.push_back(coordinate);
      int64_t extent = info_.axes[static_cast<size_t>(a)].extent;
      for (size_t d = 0; d < dims_.size(); ++d) {
        if (dims_[d].at.axis != a) continue;
        stage.axes.push_back(places(d));
        from[d] = ir::variable(stage.axes.back().var);
        coordinate = coordinate * dims_[d].outputs + from[d];
        extent = dims_[d].tiles * dims_[d].outputs;
      }
      coordinates.push_back(coordinate);
      extents.push_back(extent);
    }
    std::vector<int64_t> shape;
    std::vector<Expr> write;
    for (const int axis : written_axes(info_)) {
      shape.push_back(extents[static_cast<size_t>(axis)]);
      write.push_back(coordinates[static_cast<size_t>(axis)]);
    }
    const size_t d = dims_.size() - 1;
    const Expr value = combine(dims_[d].inverse, from[d], [&](int64_t t) {
      std::vector<Expr> at = from;
      at[d] = ir::constant(t);
      return ir::load(last, at);
    });
    result_ = ir::make_buffer(info_.stage.outputs[0].buffer->name, DType::kF32, shape);
    stage.outputs.push_back({result_, write, value, nullptr, nullptr, nullptr});
    stages_.push_back(std::move(stage));
  }
  Axis places(size_t d) const { return compute::make_axis(dims_[d].name + "_i", dims_[d].outputs); }

  const StageInfo& info_;
  const Factors& f_;
  std::vector<Transformed> dims_;
  std::vector<compute::Stage> stages_;
  ir::BufferPtr result_;
};

}  // namespace

namespace {

// Of a matrix by rows.
template <typename Matrix>
auto& at(Matrix& matrix, int64_t row, int64_t column, int64_t columns) {
  return matrix[static_cast<size_t>(row * columns + column)];
}

// A single tap needs no transform.
WinogradMatrices one_tap(int64_t outputs) {
  WinogradMatrices m{outputs, 1, outputs, {}, {}, {}};
  m.weights.assign(static_cast<size_t>(outputs), 1);
  for (int64_t i = 0; i < outputs * outputs; ++i) m.data.push_back(i % (outputs + 1) == 0 ? 1 : 0);
  m.inverse = m.data;
  return m;
}

// Of stride 1.
WinogradMatrices phase_matrices(int64_t outputs, int64_t taps) {
  static constexpr double kPoints[] = {0, 1, -1, 2, -2, 0.5, -0.5};
  WinogradMatrices m{outputs, taps, outputs + taps - 1, {}, {}, {}};
  HONE_ASSERT(outputs > 0 && taps > 0 && m.points <= kMaxWinogradPoints, "too many points");
  const auto n = static_cast<size_t>(m.points);
  const std::vector<double> finite(std::begin(kPoints), std::begin(kPoints) + n - 1);
  for (size_t j = 0; j < n; ++j) {
    const bool infinite = j + 1 == n;
    std::vector<double> others = finite;
    if (!infinite) others.erase(others.begin() + static_cast<std::ptrdiff_t>(j));
    double scale = 1;  // of the Lagrange polynomial; goes into the weights
    for (const double other : others) {
      if (!infinite) scale *= finite[j] - other;
    }
    std::vector<double> row = polynomial(others);
    row.resize(n, 0);
    m.data.insert(m.data.end(), row.begin(), row.end());
    double power = 1;
    for (int64_t k = 0; k < taps; ++k) {
      m.weights.push_back(infinite ? (k + 1 == taps ? 1.0 : 0.0) : power / scale);
      if (!infinite) power *= finite[j];
    }
  }
  for (int64_t i = 0; i < outputs; ++i) {
    for (size_t j = 0; j + 1 < n; ++j) {
      double power = 1;
      for (int64_t k = 0; k < i; ++k) power *= finite[j];
      m.inverse.push_back(power);
    }
    m.inverse.push_back(i + 1 == outputs ? 1 : 0);
  }
  return m;
}

}  // namespace

WinogradMatrices winograd_matrices(int64_t outputs, int64_t taps, int64_t stride) {
  HONE_ASSERT(stride > 0 && stride <= taps, "a phase without taps");
  WinogradMatrices m{outputs, taps, stride * (outputs - 1) + taps, {}, {}, {}};
  const auto zeros = [](int64_t rows, int64_t columns) {
    return std::vector<double>(static_cast<size_t>(rows * columns), 0);
  };
  m.data = zeros(m.points, m.points);
  m.weights = zeros(m.points, taps);
  m.inverse = zeros(outputs, m.points);
  int64_t first = 0;  // of the phase's points
  for (int64_t p = 0; p < stride; ++p) {
    const int64_t own = (taps - p + stride - 1) / stride;
    const WinogradMatrices phase = own == 1 ? one_tap(outputs) : phase_matrices(outputs, own);
    const auto from = phase.points;
    for (int64_t i = 0; i < from; ++i) {
      const int64_t row = first + i;
      for (int64_t j = 0; j < from; ++j)
        at(m.data, row, p + stride * j, m.points) = at(phase.data, i, j, from);
      for (int64_t k = 0; k < own; ++k)
        at(m.weights, row, p + stride * k, taps) = at(phase.weights, i, k, own);
      for (int64_t o = 0; o < outputs; ++o)
        at(m.inverse, o, row, m.points) = at(phase.inverse, o, i, from);
    }
    first += from;
  }
  return m;
}

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
  Rewrite rewrite(*info, factors, find_dims(*info, factors), step.outputs);
  std::vector<compute::Stage> stages = rewrite.run();
  const ir::BufferPtr from = info->stage.outputs[0].buffer;
  for (const int reader : state.readers(from)) {
    if (reader != index && state.stages[static_cast<size_t>(reader)].info->stage.is_extern())
      return invalid("{} is read by an extern stage", step.stage);
  }
  replace_stage(state, index, std::move(stages));
  for (const int reader : state.readers(from))
    redirect_buffer(state, reader, from, rewrite.result());
  return ok_status();
}

}  // namespace hone::schedule
