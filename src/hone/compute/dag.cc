#include "hone/compute/dag.h"

#include <algorithm>
#include <cmath>

#include "hone/compute/affine.h"

namespace hone::compute {

using ir::BufferPtr;
using ir::Expr;
using ir::Op;

const Stage* Dag::find_stage(std::string_view name) const {
  for (const Stage& stage : stages) {
    if (stage.name == name) return &stage;
  }
  return nullptr;
}

const ir::Param* Dag::find_param(const BufferPtr& buffer) const {
  for (const ir::Param& param : params) {
    if (param.buffer == buffer) return &param;
  }
  return nullptr;
}

std::vector<int> Dag::writers(const BufferPtr& buffer) const {
  std::vector<int> found;
  for (size_t i = 0; i < stages.size(); ++i) {
    for (const Output& output : stages[i].outputs) {
      if (output.buffer == buffer) found.push_back(static_cast<int>(i));
    }
  }
  return found;
}

std::vector<int> Dag::readers(const BufferPtr& buffer) const {
  std::vector<int> found;
  for (size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    bool reads_it = std::count(stage.extern_reads.begin(), stage.extern_reads.end(), buffer) > 0;
    for (const Output& output : stage.outputs) {
      if (output.buffer == buffer || !output.value) continue;
      ir::visit(output.value,
                [&](const Expr& e) { reads_it |= e->op == Op::kLoad && e->buffer == buffer; });
    }
    if (reads_it) found.push_back(static_cast<int>(i));
  }
  return found;
}

View::View(BufferPtr whole)
    : buffer(std::move(whole)), offset(buffer->shape.size(), 0), shape(buffer->shape) {}

View::View(BufferPtr of, std::vector<int64_t> at, std::vector<int64_t> extents)
    : buffer(std::move(of)), offset(std::move(at)), shape(std::move(extents)) {
  HONE_ASSERT(offset.size() == buffer->shape.size() && shape.size() == offset.size(),
              "a view has the rank of its buffer");
}

std::vector<Expr> View::at(const std::vector<Expr>& indices) const {
  HONE_ASSERT(indices.size() == offset.size(), "one index per dimension");
  std::vector<Expr> shifted;
  for (size_t i = 0; i < indices.size(); ++i) shifted.push_back(indices[i] + offset[i]);
  return shifted;
}

Expr View::read(const std::vector<Expr>& indices) const { return ir::load(buffer, at(indices)); }

Axis make_axis(std::string role, int64_t extent) { return {ir::make_var(std::move(role)), extent}; }

std::vector<Expr> variables(const std::vector<Axis>& axes) {
  std::vector<Expr> vars;
  for (const Axis& axis : axes) vars.push_back(ir::variable(axis.var));
  return vars;
}

std::string kernel_class(const Dag& dag) {
  std::string name;
  for (const Stage& stage : dag.stages) {
    const std::string& tag = stage.op;
    if (tag.empty()) continue;
    if (!name.empty()) name += '+';
    name += tag;
  }
  return name;
}

std::string describe(const Dag& dag) {
  std::string text = kernel_class(dag);
  for (const ir::Param& param : dag.params) {
    text += fmt::format("{} {}[{}]", param.role == ir::Role::kOutput ? " ->" : "",
                        param.buffer->name, fmt::join(param.buffer->shape, ","));
  }
  // Strides and the like do not follow from shapes.
  for (const Stage& stage : dag.stages) {
    if (stage.reduce.empty()) continue;
    text += fmt::format(" {}(", stage.name);
    std::string separator;
    for (const Axis& axis : stage_axes(stage)) {
      text += fmt::format("{}{}={}", separator, axis.var->name, axis.extent);
      separator = " ";
    }
    text += ')';
  }
  return text;
}

double flops(const Stage& stage) {
  double points = 1, each = 0;
  for (const Axis& axis : stage_axes(stage)) points *= static_cast<double>(axis.extent);
  for (const Output& output : stage.outputs) {
    if (!output.value) continue;  // extern: not counted
    ir::visit(output.value, [&](const Expr& e) {
      const bool counted = !e->args.empty() && e->op != Op::kLoad && e->op != Op::kCast;
      if (counted && is_float(e->type)) each += 1;
    });
  }
  return points * each;
}

double flops(const Dag& dag) {
  double total = 0;
  for (const Stage& stage : dag.stages) total += flops(stage);
  return total;
}

// ---- DagBuilder ----

namespace {

std::string unique(const std::string& name, std::vector<std::string>& taken) {
  std::string candidate = name;
  for (int i = 1; std::count(taken.begin(), taken.end(), candidate) > 0; ++i) {
    candidate = fmt::format("{}.{}", name, i);
  }
  taken.push_back(candidate);
  return candidate;
}

}  // namespace

BufferPtr DagBuilder::input(std::string role, std::vector<int64_t> shape, DType dtype) {
  dag_.params.push_back(
      {ir::make_buffer(unique(role, buffer_names_), dtype, std::move(shape)), ir::Role::kInput});
  return dag_.params.back().buffer;
}

BufferPtr DagBuilder::constant(std::string role, std::vector<int64_t> shape, DType dtype) {
  dag_.params.push_back(
      {ir::make_buffer(unique(role, buffer_names_), dtype, std::move(shape)), ir::Role::kConstant});
  return dag_.params.back().buffer;
}

BufferPtr DagBuilder::output(std::string role, std::vector<int64_t> shape, DType dtype) {
  dag_.params.push_back(
      {ir::make_buffer(unique(role, buffer_names_), dtype, std::move(shape)), ir::Role::kOutput});
  return dag_.params.back().buffer;
}

BufferPtr DagBuilder::intermediate(std::string role, std::vector<int64_t> shape, DType dtype) {
  return ir::make_buffer(unique(role, buffer_names_), dtype, std::move(shape));
}

void DagBuilder::pointwise(std::string op, std::vector<Axis> axes, const View& out, Expr value) {
  Output output{out.buffer, out.at(variables(axes)), std::move(value), nullptr, nullptr, nullptr};
  add({op, op, std::move(axes), {}, nullptr, {std::move(output)}, {}, {}});
}

namespace {

Stage reduction(std::string op, std::vector<Axis> axes, std::vector<Axis> reduce, const View& out,
                const Expr& value, Op combine, double identity) {
  Output output;
  output.buffer = out.buffer;
  output.write = out.at(variables(axes));
  output.other = ir::make_buffer(out.buffer->name + ".other", out.buffer->dtype, out.buffer->shape);
  const Expr old = ir::load(output.buffer, output.write);
  // An extreme gives its second operand for NaN: the old value, so that NaN is passed over.
  const bool is_extreme = combine == Op::kMax || combine == Op::kMin;
  const auto combined = [&](const Expr& element) {
    return is_extreme ? ir::make(combine, {element, old}) : ir::make(combine, {old, element});
  };
  output.value = combined(value);
  output.identity = is_float(out.buffer->dtype)
                        ? ir::constant_float(identity, out.buffer->dtype)
                        : ir::cast(out.buffer->dtype, ir::constant(static_cast<int64_t>(identity)));
  output.merge = combined(ir::load(output.other, output.write));
  return {op, op, std::move(axes), std::move(reduce), nullptr, {std::move(output)}, {}, {}};
}

}  // namespace

void DagBuilder::sum(std::string op, std::vector<Axis> axes, std::vector<Axis> reduce,
                     const View& out, Expr value) {
  add(reduction(std::move(op), std::move(axes), std::move(reduce), out, value, Op::kAdd, 0));
}

void DagBuilder::max(std::string op, std::vector<Axis> axes, std::vector<Axis> reduce,
                     const View& out, Expr value) {
  const double lowest = is_float(out.buffer->dtype) ? -HUGE_VAL : -9.2e18;
  add(reduction(std::move(op), std::move(axes), std::move(reduce), out, value, Op::kMax, lowest));
}

void DagBuilder::add(Stage stage) {
  stage.name = unique(stage.name, stage_names_);
  dag_.stages.push_back(std::move(stage));
}

Result<Dag> DagBuilder::build() && {
  HONE_RETURN_IF_ERROR(verify(dag_));
  return std::move(dag_);
}

}  // namespace hone::compute
