#include "hone/graph/emit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/compute/kernel_params.h"
#include "hone/graph/node_names.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {

using compute::Axis;
using ir::Expr;

std::vector<int> order_of(const Value& value) {
  if (value.order.size() == value.shape.size()) return value.order;
  std::vector<int> order(value.shape.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Storage storage_or_dense(const Value& value) {
  if (value.storage.buffer >= 0) return value.storage;
  Storage dense;
  dense.order = order_of(value);
  for (const int dim : dense.order) dense.extent.push_back(value.shape[static_cast<size_t>(dim)]);
  dense.offset.assign(dense.order.size(), 0);
  dense.step.assign(dense.order.size(), 1);
  dense.border_low.assign(dense.order.size(), 0);
  dense.border_high = dense.border_low;
  return dense;
}

Expr literal(DType dtype, double value) {
  if (is_float(dtype)) return ir::constant_float(value, dtype);
  if (dtype == DType::kBool) return ir::constant_bool(value != 0);
  const Expr whole = ir::constant(static_cast<int64_t>(value));
  return dtype == DType::kI64 ? whole : ir::cast(dtype, whole);
}

Expr literal(const Tensor& tensor, int64_t flat) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::kI64 || dtype == DType::kU64)  // does not pass through double
    return ir::constant_int(tensor.as<int64_t>()[static_cast<size_t>(flat)], dtype);
  if (is_small(dtype)) {
    const uint8_t byte = tensor.as<uint8_t>()[static_cast<size_t>(flat)];
    const DType stored = stored_type(dtype);
    return ir::constant_int(stored == DType::kI8 ? static_cast<int8_t>(byte) : byte, stored);
  }
  return literal(compute_type(dtype), tensor.at(flat));
}

namespace {

// The ends of an integer type's range as 64 bits, which constant_int() wraps.
std::pair<int64_t, int64_t> integer_range(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  const bool is_signed =
      dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
  const int64_t bits = dtype_bytes(dtype) * 8;
  if (!is_signed) return {0, bits == 64 ? -1 : (int64_t{1} << bits) - 1};
  const int64_t high = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  return {-high - 1, high};
}

}  // namespace

Expr lowest(DType dtype) {
  return is_float(dtype) ? ir::constant_float(-HUGE_VAL, dtype)
                         : ir::constant_int(integer_range(dtype).first, dtype);
}

Expr highest(DType dtype) {
  return is_float(dtype) ? ir::constant_float(HUGE_VAL, dtype)
                         : ir::constant_int(integer_range(dtype).second, dtype);
}

ir::Stmt loops_over(const std::vector<Axis>& axes, std::vector<ir::Stmt> body) {
  for (size_t i = axes.size(); i-- > 0;) {
    body = {ir::make_for(axes[i].var, ir::constant(0), ir::constant(axes[i].extent),
                         ir::ForKind::kSerial, std::move(body))};
  }
  return ir::make_block(std::move(body));
}

DType compute_type(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : stored_type(dtype);
}

namespace {

// Half types are stored as such and computed in f32.
Expr widened(Expr e) {
  const DType type = compute_type(e->type);
  return type == e->type ? e : ir::cast(type, e);
}

std::vector<Expr> place_in(const Storage& storage, const std::vector<Expr>& index) {
  HONE_ASSERT(index.size() == storage.order.size(), "one coordinate per dimension");
  std::vector<Expr> at;
  for (size_t j = 0; j < storage.order.size(); ++j) {
    const Expr& along = index[static_cast<size_t>(storage.order[j])];
    at.push_back((storage.step[j] == 1 ? along : along * storage.step[j]) + storage.offset[j]);
  }
  return at;
}

}  // namespace

std::vector<bool> non_negative_values(const Graph& graph) {
  std::vector<bool> known(graph.values.size(), false);
  for (const Node& node : graph.nodes) {
    if (node.op->non_negative == nullptr || node.outputs.empty() || node.outputs[0] == kNoValue)
      continue;
    // Sums, products and casts of integers with a sign wrap.
    const DType dtype = graph.value(node.outputs[0]).dtype;
    if (is_small(dtype) || (!is_float(dtype) && lowest(dtype)->int_value < 0)) continue;
    known[static_cast<size_t>(node.outputs[0])] = node.op->non_negative(graph, node, known);
  }
  return known;
}

EmitContext::EmitContext(const Graph& graph, std::vector<int> nodes,
                         const std::vector<bool>& non_negative)
    : graph_(graph), nodes_(std::move(nodes)), non_negative_(non_negative) {}

// An anchor begins an iteration space, which its followers share.
void EmitContext::start_part(size_t node) {
  const auto is_anchor = [&](size_t i) {
    return graph_.nodes[static_cast<size_t>(nodes_[i])].op->kind == Kind::kContraction;
  };
  if (node > 0 && !is_anchor(node)) return;
  roles_.clear();
  splits_.clear();
  added_.clear();
  space_.clear();
  size_t last = node;
  while (last + 1 < nodes_.size() && !is_anchor(last + 1)) ++last;
  part_result_ = nodes_[last];
}

namespace {

// The error of a node that is computed when the model is compiled only, and was not.
Status no_emit(const Graph& graph, const Node& node) {
  const bool is_known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
    return in == kNoValue || graph.value(in).constant.has_value();
  });
  const Value& made = graph.value(node.outputs[0]);
  const int64_t bytes = num_elements(made.shape) * dtype_bytes(made.dtype);
  if (!is_known || bytes <= kMaxMadeBytes) {
    return error(Code::kUnsupported, "{}: {} is supported on constants only", graph.file,
                 name_and_type(node));
  }
  return error(Code::kUnsupported,
               "{}: {}: {} {} of {} bytes would be computed in advance, expected at most {}",
               graph.file, name_and_type(node), dtype_name(made.dtype), to_string(made.shape),
               bytes, kMaxMadeBytes);
}

}  // namespace

Result<Emitted> EmitContext::run() && {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    start_part(i);
    node_ = &graph_.nodes[static_cast<size_t>(nodes_[i])];
    if (node_->op->emit == nullptr) return no_emit(graph_, *node_);
    first_record_ = records_.size();
    node_->op->emit(*this);
    HONE_ASSERT(records_.size() > first_record_, "an operator emits at least one stage");
    for (size_t r = first_record_; r < records_.size(); ++r)
      records_[r].plain_sums = node_->plain_sums && !records_[r].reduce.empty();
    inside_.push_back({node_->outputs[0], records_.size() - 1});
  }
  // The last stage writes the result; every other one its intermediate.
  if (records_.back().body.empty()) widen_result();
  for (size_t i = 0; i < records_.size(); ++i) {
    Record& record = records_[i];
    if (i + 1 < records_.size()) {
      HONE_ASSERT(record.buffer != nullptr, "every stage but the last is read by another");
      add_stage(record, record.buffer, compute::variables(record.axes));
      continue;
    }
    if (!record.body.empty()) {
      add_body(record);
      continue;
    }
    const Storage storage = storage_or_dense(graph_.value(node_->outputs[0]));
    const ir::BufferPtr out = result_buffer(0);
    add_stage(record, out, place_in(storage, record.index));
  }
  Emitted emitted;
  Result<compute::Dag> dag = std::move(builder_).build();
  if (!dag.ok()) {
    return error(dag.status().code(), "{}: {}: {}", graph_.file, name_and_type(*node_),
                 dag.status().message());
  }
  emitted.dag = std::move(dag).value();
  for (const size_t i : compute::remove_dead_params(emitted.dag))
    emitted.arguments.push_back(std::move(params_[i].argument));
  return emitted;
}

void EmitContext::name_dims(std::vector<std::string> roles) {
  if (roles_.empty()) roles_ = std::move(roles);
}

void EmitContext::split_dim(int dim, const std::string& outer_role, int64_t inner) {
  if (space_.empty()) splits_.push_back({dim, {outer_role, inner}});
}

void EmitContext::add_axis(const std::string& role, int64_t extent) {
  if (space_.empty()) added_.push_back({role, extent, -1, 1});
}

// The axes in the memory order of the group's result, then those that were added.
void EmitContext::make_space() {
  if (!space_.empty()) return;
  const Value& result = graph_.value(graph_.nodes[static_cast<size_t>(part_result_)].outputs[0]);
  HONE_ASSERT(roles_.empty() || roles_.size() == result.shape.size(), "one role per dimension");
  for (const int dim : order_of(result)) {
    const auto d = static_cast<size_t>(dim);
    const std::string role = roles_.empty() ? fmt::format("i{}", dim) : roles_[d];
    int64_t inner = result.shape[d];
    for (const auto& [split, parts] : splits_) {
      if (split != dim) continue;
      inner = parts.second;
      space_.push_back({parts.first, result.shape[d] / inner, dim, inner});
    }
    space_.push_back({role, inner, dim, 1});
  }
  space_.insert(space_.end(), added_.begin(), added_.end());
}

EmitContext::Record EmitContext::new_record(const StageTag& tag, const StageAxes& axes) const {
  HONE_ASSERT(!tag.name.empty(), "steps name their stages");
  Record record{tag};
  const Value& result = graph_.value(node_->outputs[0]);
  record.index.assign(result.shape.size(), ir::constant(0));
  for (size_t i = 0; i < space_.size(); ++i) {
    const bool added = space_[i].dim < 0;
    const auto d = static_cast<size_t>(space_[i].dim);
    if (added && std::count(axes.with.begin(), axes.with.end(), space_[i].role) == 0) continue;
    if (std::count(axes.without.begin(), axes.without.end(), space_[i].dim) > 0) {
      record.index[d] = nullptr;
      continue;
    }
    const Axis axis = compute::make_axis(space_[i].role, space_[i].extent);
    const Expr var = ir::variable(axis.var);
    if (!added)
      record.index[d] = record.index[d] + (space_[i].stride == 1 ? var : var * space_[i].stride);
    record.space.push_back(i);
    record.dims.push_back(space_[i].dim);
    record.axes.push_back(axis);
  }
  return record;
}

Point EmitContext::point_of(const Record& record) const {
  Point point;
  point.axes.assign(space_.size(), nullptr);
  for (size_t i = 0; i < record.space.size(); ++i)
    point.axes[record.space[i]] = ir::variable(record.axes[i].var);
  point.index = record.index;
  return point;
}

void EmitContext::pointwise(const StageTag& tag, const PointValue& value, const StageAxes& axes) {
  make_space();
  Record record = new_record(tag, axes);
  record.value = value(point_of(record));
  records_.push_back(std::move(record));
}

// The result of a half type is rounded once, by the last stage.
void EmitContext::widen_result() {
  const DType dtype = stored_type(graph_.value(node_->outputs[0]).dtype);
  Record& last = records_.back();
  if (compute_type(dtype) == dtype || last.value->type == dtype) return;
  if (last.reduce.empty()) {
    last.value = ir::cast(dtype, last.value);
    return;
  }
  pointwise("cast", [&](const Point& point) {
    return ir::cast(dtype, load_record(records_.size() - 1, point));
  });
}

void EmitContext::body(const StageTag& tag, std::vector<Axis> axes, const Body& make) {
  Record record{tag};
  record.axes = std::move(axes);
  record.body = make(compute::variables(record.axes));
  std::erase(record.body, nullptr);
  HONE_ASSERT(!record.body.empty(), "a body does something");
  records_.push_back(std::move(record));
}

const ir::BufferPtr& EmitContext::result_buffer(size_t output) {
  results_.resize(std::max(results_.size(), output + 1));
  if (!results_[output]) {
    const ValueId id = node_->outputs[output];
    const Value& value = graph_.value(id);
    results_[output] =
        builder_.output("out", storage_or_dense(value).extent, stored_type(value.dtype));
    params_.push_back({EmittedArgument(id), results_[output]});
  }
  return results_[output];
}

ir::Stmt EmitContext::store(size_t output, const std::vector<Expr>& index, const Expr& value) {
  if (output >= node_->outputs.size() || node_->outputs[output] == kNoValue) return nullptr;
  const Value& result = graph_.value(node_->outputs[output]);
  const DType stored = stored_type(result.dtype);
  return ir::make_store(result_buffer(output), place_in(storage_or_dense(result), index),
                        value->type == stored ? value : ir::cast(stored, value));
}

Expr EmitContext::read_result(size_t output, const std::vector<Expr>& index) {
  const Value& result = graph_.value(node_->outputs[output]);
  return widened(ir::load(result_buffer(output), place_in(storage_or_dense(result), index)));
}

void EmitContext::add_body(Record& record) {
  compute::Stage stage;
  stage.name = record.tag.name;
  stage.op = record.tag.op;
  stage.axes = record.axes;
  stage.body = std::move(record.body);
  for (const ir::BufferPtr& result : results_) {
    if (result) stage.outputs.push_back({.buffer = result});
  }
  for (const Param& param : params_) {
    if (std::count(results_.begin(), results_.end(), param.buffer) == 0)
      stage.extern_reads.push_back(param.buffer);
  }
  for (const Record& other : records_) {
    if (other.buffer) stage.extern_reads.push_back(other.buffer);
  }
  builder_.add(std::move(stage));
}

const ir::BufferPtr& EmitContext::buffer_of(Record& record) {
  if (!record.buffer) {
    std::vector<int64_t> shape;
    for (const Axis& axis : record.axes) shape.push_back(axis.extent);
    record.buffer = builder_.intermediate(record.tag.name, std::move(shape), record.value->type);
  }
  return record.buffer;
}

Expr EmitContext::load_record(size_t index, const Point& point) {
  Record& record = records_[index];
  std::vector<Expr> at;
  for (const size_t i : record.space) at.push_back(point.axes[i]);
  return widened(ir::load(buffer_of(record), std::move(at)));
}

size_t EmitContext::place_of(std::string_view role) const {
  for (size_t i = 0; i < space_.size(); ++i) {
    if (space_[i].role == role) return i;
  }
  HONE_ASSERT(false, "the space has an axis of this role");
}

Expr EmitContext::axis(const Point& point, std::string_view role) const {
  return point.axes[place_of(role)];
}

Point EmitContext::moved(const Point& point, std::string_view role, const Expr& to) const {
  Point elsewhere = point;
  const size_t place = place_of(role);
  HONE_ASSERT(space_[place].dim < 0, "an axis of the result is moved by its coordinates");
  elsewhere.axes[place] = to;
  return elsewhere;
}

Expr EmitContext::last(const Point& point, size_t back) {
  HONE_ASSERT(records_.size() > first_record_ + back, "the operator has no earlier stage");
  return load_record(records_.size() - 1 - back, point);
}

Expr EmitContext::last_at(const std::vector<Expr>& index, size_t back) {
  HONE_ASSERT(splits_.empty(), "coordinates are axes only without splits");
  Point point{{}, index};
  for (const SpaceAxis& axis : space_) point.axes.push_back(index[static_cast<size_t>(axis.dim)]);
  return last(point, back);
}

const ir::BufferPtr& EmitContext::param(ValueId id, const char* role) {
  for (const Param& known : params_) {
    if (known.argument.value == id) return known.buffer;
  }
  const Value& value = graph_.value(id);
  const Shape extent = storage_or_dense(value).extent;
  const DType stored = stored_type(value.dtype);
  params_.push_back({EmittedArgument(id), value.constant ? builder_.constant(role, extent, stored)
                                                         : builder_.input(role, extent, stored)});
  return params_.back().buffer;
}

Expr EmitContext::read(size_t i, const char* role, const std::vector<Expr>& index) {
  const ValueId id = node_->inputs[i];
  for (const auto& [value, made] : inside_) {
    if (value != id) continue;
    Record& record = records_[made];
    std::vector<Expr> at;
    for (const int dim : record.dims) at.push_back(index[static_cast<size_t>(dim)]);
    return widened(ir::load(buffer_of(record), std::move(at)));
  }
  const Storage storage = storage_or_dense(graph_.value(id));
  return widened(ir::load(param(id, role), place_in(storage, index)));
}

Expr EmitContext::read_padded(const char* role, const std::vector<Expr>& index) {
  const Padding padding = node_->op->padding(graph_, *node_);
  const Value& value = input(0);
  const Storage storage = storage_or_dense(value);
  const bool border_fits =
      padding.fill == Padding::Fill::kZero || non_negative_[static_cast<size_t>(node_->inputs[0])];
  Expr inside;
  const auto require = [&](const Expr& condition) {
    inside = inside ? ir::logical_and(inside, condition) : condition;
  };
  for (size_t d = 0; d < index.size(); ++d) {
    if (padding.low[d] > 0 && !(border_fits && storage.border_low[d] >= padding.low[d])) {
      require(ir::less_equal(ir::constant(0), index[d]));
    }
    if (padding.high[d] > 0 && !(border_fits && storage.border_high[d] >= padding.high[d])) {
      require(ir::less(index[d], ir::constant(value.shape[d])));
    }
  }
  const Expr element = read(0, role, index);
  if (!inside) return element;
  return ir::select(
      inside, element,
      padding.fill == Padding::Fill::kZero ? literal(element->type, 0) : lowest(element->type));
}

bool EmitContext::inside(size_t i) const {
  return std::any_of(inside_.begin(), inside_.end(),
                     [&](const auto& v) { return v.first == node_->inputs[i]; });
}

Expr EmitContext::operand(size_t i, const char* role, const Point& point) {
  const ValueId id = node_->inputs[i];
  for (const auto& [value, record] : inside_) {
    if (value == id) return load_record(record, point);
  }
  const Value& value = graph_.value(id);
  if (value.constant && value.constant->size() == 1) return literal(*value.constant, 0);
  std::vector<Expr> index;
  const size_t skipped = point.index.size() - value.shape.size();
  for (size_t d = 0; d < value.shape.size(); ++d) {
    const bool repeated = value.shape[d] == 1;
    index.push_back(repeated ? ir::constant(0) : point.index[skipped + d]);
  }
  return read(i, role, index);
}

Expr EmitContext::constant(const char* role, const Tensor& tensor, const std::vector<Expr>& index) {
  params_.push_back({EmittedArgument(tensor),
                     builder_.constant(role, tensor.shape(), stored_type(tensor.dtype()))});
  return widened(ir::load(params_.back().buffer, index));
}

namespace {

ir::Op combine_op(Combine combine) {
  switch (combine) {
    case Combine::kSum: return ir::Op::kAdd;
    case Combine::kProduct: return ir::Op::kMul;
    case Combine::kMax:
    case Combine::kMaxOrNan: return ir::Op::kMax;
    case Combine::kMin:
    case Combine::kMinOrNan: return ir::Op::kMin;
  }
  HONE_ASSERT(false, "no way in which a reduction combines");
}

// `old` with one more element. It is the second operand of an extreme, which gives that one for
// NaN: so a NaN is passed over, whatever the order of the elements, and a NaN in `old` stays.
Expr combined(Combine combine, const Expr& old, const Expr& element) {
  const ir::Op op = combine_op(combine);
  if (op != ir::Op::kMax && op != ir::Op::kMin) return ir::make(op, {old, element});
  const Expr extreme = ir::make(op, {element, old});
  const bool keeps_nan = combine == Combine::kMaxOrNan || combine == Combine::kMinOrNan;
  if (!keeps_nan || !is_float(element->type)) return extreme;
  return ir::select(ir::make(ir::Op::kNe, {element, element}), element, extreme);
}

}  // namespace

Expr combine_identity(Combine combine, DType dtype) {
  if (combine == Combine::kSum) return literal(dtype, 0);
  if (combine == Combine::kProduct) return literal(dtype, 1);
  return combine_op(combine) == ir::Op::kMax ? lowest(dtype) : highest(dtype);
}

void EmitContext::add_stage(const Record& record, const ir::BufferPtr& buffer,
                            const std::vector<Expr>& write) {
  compute::Output output;
  output.buffer = buffer;
  output.write = write;
  output.value = record.value;
  if (!record.reduce.empty() && record.joint.empty()) {
    const Expr old = ir::load(buffer, write);
    output.value = combined(record.combine, old, record.value);
    output.identity = combine_identity(record.combine, buffer->dtype);
    output.other = ir::make_buffer(buffer->name + ".other", buffer->dtype, buffer->shape);
    output.merge = combined(record.combine, old, ir::load(output.other, write));
  }
  compute::Stage stage;
  stage.name = record.tag.name;
  stage.op = record.tag.op;
  stage.axes = record.axes;
  stage.reduce = record.reduce;
  stage.until = record.until;
  stage.plain_sums = record.plain_sums;
  stage.outputs = record.joint;
  if (record.joint.empty()) stage.outputs.push_back(std::move(output));
  builder_.add(std::move(stage));
}

}  // namespace hone::graph
