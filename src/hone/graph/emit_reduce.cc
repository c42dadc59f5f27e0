#include "hone/graph/emit.h"

namespace hone::graph {

using compute::Axis;
using ir::Expr;

void EmitContext::reduce(Combine combine, const StageTag& tag, std::vector<Axis> reduce,
                         const ReduceValue& value, const StageAxes& axes, const PointValue& until) {
  make_space();
  Record record = new_record(tag, axes);
  record.combine = combine;
  record.reduce = std::move(reduce);
  record.value = value(point_of(record), compute::variables(record.reduce));
  if (until) record.until = until(point_of(record));
  records_.push_back(std::move(record));
}

void EmitContext::reduce_together(const StageTag& tag, std::vector<Axis> reduce, const Joint& joint,
                                  const StageAxes& axes) {
  make_space();
  Record record = new_record(tag, axes);
  record.reduce = std::move(reduce);
  const std::vector<Expr> at = compute::variables(record.axes);
  std::vector<int64_t> shape;
  for (const Axis& axis : record.axes) shape.push_back(axis.extent);
  Joint::Values old, other;
  for (const Expr& identity : joint.identity) {
    compute::Output output;
    output.buffer = builder_.intermediate(tag.name, shape, identity->type);
    output.write = at;
    output.identity = identity;
    output.other = ir::make_buffer(output.buffer->name + ".other", identity->type, shape);
    old.push_back(ir::load(output.buffer, at));
    other.push_back(ir::load(output.other, at));
    record.joint.push_back(std::move(output));
  }
  const auto values = joint.update(point_of(record), compute::variables(record.reduce), old);
  const auto merged = joint.merge(old, other);
  for (size_t i = 0; i < record.joint.size(); ++i) {
    record.joint[i].value = values[i];
    record.joint[i].merge = merged[i];
  }
  record.value = values[0];
  record.buffer = record.joint[0].buffer;
  records_.push_back(std::move(record));
}

}  // namespace hone::graph
