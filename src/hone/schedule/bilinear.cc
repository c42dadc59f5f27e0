#include "hone/schedule/bilinear.h"

#include <algorithm>

#include "hone/schedule/stage_rewrite.h"
#include "hone/tensor/half_tensor.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using ir::Expr;
using ir::Op;

bool is_load(const Expr& e, const ir::BufferPtr& buffer) {
  return e->op == Op::kLoad && e->buffer == buffer;
}

// The buffer that a factor is loaded from, maybe in a half type; null if it is anything else.
ir::BufferPtr weight_of(const Expr& factor) {
  const bool is_wide = factor->op == Op::kCast && is_half(factor->args[0]->type);
  const Expr& load = is_wide ? factor->args[0] : factor;
  return load->op == Op::kLoad ? load->buffer : nullptr;
}

bool is_constant(const State& state, const ir::BufferPtr& buffer) {
  if (const ir::Param* param = state.find_param(buffer)) return param->role == ir::Role::kConstant;
  const StageList writers = state.writers(buffer);
  return !writers.empty() && std::all_of(writers.begin(), writers.end(), [&](int s) {
    return state.stages[static_cast<size_t>(s)].info->constant;
  });
}

std::vector<int64_t> extents_of(const std::vector<Axis>& axes) {
  std::vector<int64_t> shape;
  for (const Axis& axis : axes) shape.push_back(axis.extent);
  return shape;
}

}  // namespace

std::optional<Factors> factors_of(const State& state, const StageInfo& info) {
  if (info.stage.is_extern()) return std::nullopt;
  const ir::BufferPtr& buffer = info.stage.outputs[0].buffer;
  const bool replaceable = !state.is_param(buffer) && state.writers(buffer).size() == 1;
  return replaceable ? product_of(state, info) : std::nullopt;
}

std::optional<Factors> product_of(const State& state, const StageInfo& info) {
  const compute::Stage& stage = info.stage;
  if (stage.is_extern() || stage.where || stage.outputs.size() != 1 || stage.reduce.empty())
    return std::nullopt;
  const compute::Output& output = stage.outputs[0];
  if (output.buffer->dtype != DType::kF32 || output.value->op != Op::kAdd) return std::nullopt;
  const int old = is_load(output.value->args[0], output.buffer) ? 0 : 1;
  const Expr& product = output.value->args[static_cast<size_t>(1 - old)];
  if (!is_load(output.value->args[static_cast<size_t>(old)], output.buffer) ||
      product->op != Op::kMul || output.identity->op != Op::kFloat ||
      output.identity->float_value != 0 || info.reads.size() != 2)
    return std::nullopt;
  for (const int side : {0, 1}) {
    const Expr& weight = product->args[static_cast<size_t>(side)];
    const ir::BufferPtr from = weight_of(weight);
    if (!from || !is_constant(state, from)) continue;
    const bool first = info.reads[0].buffer == from;
    const compute::Access& data = info.reads[first ? 1 : 0];
    if (data.buffer == from || data.buffer->dtype != DType::kF32) return std::nullopt;
    return Factors{product->args[static_cast<size_t>(1 - side)], weight, data,
                   info.reads[first ? 0 : 1]};
  }
  return std::nullopt;
}

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

ir::BufferPtr known_matrix(const std::string& name, int64_t rows, int64_t columns,
                           const std::vector<double>& values) {
  auto buffer = std::make_shared<ir::Buffer>();
  buffer->name = name;
  buffer->shape = {rows, columns};
  buffer->values.assign(values.begin(), values.end());
  return buffer;
}

Expr combine(const ir::BufferPtr& matrix, const Expr& row,
             const std::function<Expr(int64_t)>& value) {
  Expr sum;
  for (int64_t t = 0; t < matrix->shape[1]; ++t) {
    const Expr term = ir::load(matrix, {row, ir::constant(t)}) * value(t);
    sum = sum ? sum + term : term;
  }
  return sum;
}

Expr load_wide(const ir::BufferPtr& buffer, std::vector<Expr> at) {
  const Expr load = ir::load(buffer, std::move(at));
  return buffer->dtype == DType::kF32 ? load : ir::cast(DType::kF32, load);
}

ir::BufferPtr NewStages::add(const char* suffix, const std::vector<Axis>& axes, Expr value,
                             DType dtype) {
  return add(suffix, axes, extents_of(axes), compute::variables(axes), std::move(value), dtype);
}

ir::BufferPtr NewStages::add(const char* suffix, std::vector<Axis> axes,
                             const std::vector<int64_t>& shape, std::vector<Expr> write, Expr value,
                             DType dtype) {
  compute::Stage stage;
  stage.name = of_.stage.name + suffix;
  stage.axes = std::move(axes);
  const ir::BufferPtr buffer = ir::make_buffer(stage.name, dtype, shape);
  if (dtype != DType::kF32) value = ir::cast(dtype, value);
  stage.outputs.push_back({buffer, std::move(write), std::move(value), nullptr, nullptr, nullptr});
  stages_.push_back(std::move(stage));
  return buffer;
}

ir::BufferPtr NewStages::add_products(std::vector<Axis> axes, std::vector<Axis> reduce,
                                      const Expr& product) {
  compute::Stage stage;
  stage.name = of_.stage.name + ".m";
  const std::vector<int64_t> shape = extents_of(axes);
  const std::vector<Expr> write = compute::variables(axes);
  stage.axes = std::move(axes);
  stage.reduce = std::move(reduce);
  const ir::BufferPtr buffer = ir::make_buffer(stage.name, DType::kF32, shape);
  const ir::BufferPtr other = ir::make_buffer(stage.name + ".other", DType::kF32, shape);
  const Expr old = ir::load(buffer, write);
  stage.outputs.push_back(
      {buffer, write, old + product, ir::constant_float(0), old + ir::load(other, write), other});
  stages_.push_back(std::move(stage));
  return buffer;
}

void NewStages::add_last(std::vector<Axis> axes, const std::vector<Expr>& coordinates,
                         const std::vector<int64_t>& extents, Expr value) {
  compute::Stage stage;
  stage.name = of_.stage.name;
  stage.op = of_.stage.op;
  stage.axes = std::move(axes);
  std::vector<int64_t> shape;
  std::vector<Expr> write;
  for (const int axis : written_axes(of_)) {
    shape.push_back(extents[static_cast<size_t>(axis)]);
    write.push_back(coordinates[static_cast<size_t>(axis)]);
  }
  const ir::BufferPtr result =
      ir::make_buffer(of_.stage.outputs[0].buffer->name, DType::kF32, shape);
  stage.outputs.push_back({result, write, std::move(value), nullptr, nullptr, nullptr});
  stages_.push_back(std::move(stage));
}

Status NewStages::replace(State& state, int index) {
  const ir::BufferPtr from = of_.stage.outputs[0].buffer;
  const ir::BufferPtr to = stages_.back().outputs[0].buffer;
  for (const int reader : state.readers(from)) {
    if (reader != index && state.stages[static_cast<size_t>(reader)].info->stage.is_extern())
      return invalid("{} is read by an extern stage", of_.stage.name);
  }
  replace_stage(state, index, std::move(stages_));
  for (const int reader : state.readers(from)) redirect_buffer(state, reader, from, to);
  return ok_status();
}

}  // namespace hone::schedule
