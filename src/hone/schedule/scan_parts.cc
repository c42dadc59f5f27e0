#include "hone/schedule/scan_parts.h"

#include <algorithm>

#include "hone/ir/scan_loop.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using compute::Stage;
using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

// Steps first .. first + count of the loop.
Stmt steps_of(const ScanBody& scan, const std::vector<Stmt>& body, const Expr& first, int64_t count,
              ir::ForKind kind) {
  std::vector<Stmt> placed;
  const Expr step = first + ir::variable(scan.loop->var);
  for (const Stmt& s : body) placed.push_back(ir::substitute(s, {{scan.loop->var, step}}));
  return ir::make_for(scan.loop->var, ir::constant(0), ir::constant(count), kind,
                      std::move(placed));
}

}  // namespace

std::optional<ScanBody> match_scan(const Stage& stage, std::string_view name) {
  if (stage.body.size() != 1 || stage.body[0]->kind != StmtKind::kAlloc) return std::nullopt;
  const ir::StmtNode& alloc = *stage.body[0];
  if (alloc.body.size() != 2 || alloc.body[0]->kind != StmtKind::kStore) return std::nullopt;
  ScanBody found{alloc.buffer, alloc.body[0], alloc.body[1], nullptr};
  if (found.loop->kind != StmtKind::kFor || found.loop->var->name != name ||
      !ir::is_const_int(found.loop->min, 0) || !ir::is_const_int(found.loop->extent) ||
      !ir::find_scan(*found.loop))
    return std::nullopt;
  for (const Stmt& s : found.loop->body) {
    if (s->kind != StmtKind::kStore) return std::nullopt;
    const auto moves = [&](const Expr& index) { return ir::moves_by_one(index, found.loop->var); };
    if (s->buffer == found.sum) {
      found.update = s;
    } else if (std::none_of(s->indices.begin(), s->indices.end(), moves)) {
      return std::nullopt;  // parts would write the same elements
    }
  }
  const auto same = [](const Expr& a, const Expr& b) { return ir::equal(a, b); };
  if (!found.update || found.first->buffer != found.sum ||
      !std::equal(found.first->indices.begin(), found.first->indices.end(),
                  found.update->indices.begin(), found.update->indices.end(), same))
    return std::nullopt;
  return found;
}

Expr identity_of(const ScanBody& scan) {
  const int64_t value = *ir::reduction_op(*scan.update) == ir::Op::kMul ? 1 : 0;
  const DType type = scan.sum->dtype;
  return is_float(type) ? ir::constant_float(static_cast<double>(value), type)
                        : ir::constant_int(value, type);
}

Result<std::vector<Stage>> scan_in_parts(const Stage& stage, const RFactor& step,
                                         std::string part_name) {
  const std::optional<ScanBody> scan = match_scan(stage, step.axis);
  if (!scan) return invalid("{} is no scan over {}", step.stage, step.axis);
  const int64_t length = scan->loop->extent->int_value;
  if (step.factor < 1 || step.factor >= length || step.parts != Parts::kBlocks)
    return invalid("{} of {} in parts of {}", step.axis, length, step.factor);
  const int64_t parts = (length + step.factor - 1) / step.factor;
  const Axis each = compute::make_axis(step.axis + "o", parts);
  const Expr part = ir::variable(each.var), begin = part * step.factor;
  std::vector<int64_t> shape;
  for (const Axis& axis : stage.axes) shape.push_back(axis.extent);
  shape.push_back(parts - 1);
  const ir::BufferPtr totals =
      ir::make_buffer(stage.outputs[0].buffer->name + ".rf", scan->sum->dtype, std::move(shape));
  std::vector<Expr> place = compute::variables(stage.axes);
  place.push_back(part);
  const std::vector<Expr>& at = scan->update->indices;
  const Expr sum = ir::load(scan->sum, at);

  Stage total = stage;
  total.name = std::move(part_name);
  total.op.clear();
  total.axes.push_back({each.var, parts - 1});
  total.outputs = {{totals}};
  total.body = {ir::make_alloc(
      scan->sum, {ir::make_store(scan->sum, at, identity_of(*scan)),
                  steps_of(*scan, {scan->update}, begin, step.factor, ir::ForKind::kVectorized),
                  ir::make_store(totals, place, sum)})};

  Stage joined = stage;
  joined.axes.push_back(each);
  joined.extern_reads.push_back(totals);
  const Axis before = compute::make_axis("before", parts);
  std::vector<Expr> of_before = place;
  of_before.back() = ir::variable(before.var);
  const Stmt add = ir::make_store(
      scan->sum, at,
      ir::make(*ir::reduction_op(*scan->update), {sum, ir::load(totals, of_before)}));
  std::vector<Stmt> body = {
      scan->first, ir::make_for(before.var, ir::constant(0), part, ir::ForKind::kSerial, {add})};
  const auto steps = [&](const Expr& first, int64_t count) {
    return steps_of(*scan, scan->loop->body, first, count, scan->loop->for_kind);
  };
  const int64_t last = (parts - 1) * step.factor;
  if (last + step.factor == length) {
    body.push_back(steps(begin, step.factor));
  } else {
    const Expr is_last = ir::less_equal(ir::constant(parts - 1), part);
    body.push_back(
        ir::make_if(ir::less(part, ir::constant(parts - 1)), {steps(begin, step.factor)}));
    body.push_back(ir::make_if(is_last, {steps(ir::constant(last), length - last)}));
  }
  joined.body = {ir::make_alloc(scan->sum, std::move(body))};
  return std::vector{std::move(total), std::move(joined)};
}

}  // namespace hone::schedule
