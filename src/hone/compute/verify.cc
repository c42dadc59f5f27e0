#include <algorithm>

#include "hone/compute/affine.h"
#include "hone/ir/linear.h"
#include "hone/ir/printer.h"

namespace hone::compute {
namespace {

using ir::BufferPtr;
using ir::Expr;
using ir::Op;

// True if every load in `e` has affine indices of the right rank and every variable is an axis.
Status check_expr(const Stage& stage, const Expr& e, const std::vector<ir::VarPtr>& vars) {
  Status status;
  const auto fail = [&](Status why) {
    if (status.ok()) status = std::move(why);
  };
  ir::visit(e, [&](const Expr& node) {
    if (node->op == Op::kVar && std::count(vars.begin(), vars.end(), node->var) == 0) {
      fail(invalid("stage {}: variable {} is none of its axes", stage.name, node->var->name));
    }
    if (node->op != Op::kLoad) return;
    if (node->args.size() != node->buffer->shape.size()) {
      fail(invalid("stage {}: {} indices into {} of rank {}", stage.name, node->args.size(),
                   node->buffer->name, node->buffer->shape.size()));
    }
    for (const Expr& index : node->args) {
      if (!affine_row(index, vars)) {
        fail(invalid("stage {}: an index of {} is not affine in the axes", stage.name,
                     node->buffer->name));
      }
    }
  });
  return status;
}

// Range of row over the whole domain.
std::pair<int64_t, int64_t> range(const AffineRow& row, const std::vector<Axis>& axes) {
  int64_t low = row.constant, high = row.constant;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t reach = row.coef[i] * (axes[i].extent - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

// Distinct points have distinct coordinates: each axis that is used must be recoverable. Greedy
// mixed-radix test: within a row, coefficients sorted by size each exceed the reach of the smaller.
bool injective(const std::vector<AffineRow>& rows, const std::vector<Axis>& axes) {
  std::vector<bool> covered(axes.size(), false);
  for (const AffineRow& row : rows) {
    std::vector<std::pair<int64_t, size_t>> terms;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (row.coef[i] != 0 && axes[i].extent > 1) terms.push_back({std::abs(row.coef[i]), i});
    }
    std::sort(terms.begin(), terms.end());
    int64_t reach = 0;
    bool separable = true;
    for (const auto& [coef, axis] : terms) {
      separable = separable && coef > reach;
      reach += coef * (axes[axis].extent - 1);
    }
    if (!separable) continue;
    for (const auto& [coef, axis] : terms) covered[axis] = true;
  }
  for (const AffineRow& row : rows) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (row.coef[i] != 0 && axes[i].extent > 1 && !covered[i]) return false;
    }
  }
  return true;
}

Status verify_output(const Dag& dag, const Stage& stage, const Output& output,
                     const std::vector<ir::VarPtr>& vars, const std::vector<Axis>& axes) {
  if (!output.buffer) return invalid("stage {}: an output has no buffer", stage.name);
  const ir::Param* param = dag.find_param(output.buffer);
  if (param && param->role != ir::Role::kOutput) {
    return invalid("stage {}: writes {}, which is no output", stage.name, output.buffer->name);
  }
  if (output.write.size() != output.buffer->shape.size()) {
    return invalid("stage {}: {} coordinates for {} of rank {}", stage.name, output.write.size(),
                   output.buffer->name, output.buffer->shape.size());
  }
  std::vector<AffineRow> rows;
  for (size_t d = 0; d < output.write.size(); ++d) {
    auto row = affine_row(output.write[d], vars);
    if (!row)
      return invalid("stage {}: writes {} at a place that is not affine", stage.name,
                     output.buffer->name);
    for (size_t i = stage.axes.size(); i < axes.size(); ++i) {
      if (row->coef[i] != 0)
        return invalid("stage {}: writes at reduce axis {}", stage.name, vars[i]->name);
    }
    const auto [low, high] = range(*row, axes);
    if (!stage.where && (low < 0 || high >= output.buffer->shape[d])) {
      return invalid("stage {}: writes {} at {}..{} of dimension {} with extent {}", stage.name,
                     output.buffer->name, low, high, d, output.buffer->shape[d]);
    }
    rows.push_back(std::move(*row));
  }
  if (!injective(rows, axes)) return invalid("stage {}: writes some elements twice", stage.name);
  if (!output.value)
    return invalid("stage {}: output {} has no value", stage.name, output.buffer->name);
  HONE_RETURN_IF_ERROR(check_expr(stage, output.value, vars));
  if (output.value->type != output.buffer->dtype) {
    return invalid("stage {}: value of type {} for {} of type {}", stage.name,
                   dtype_name(output.value->type), output.buffer->name,
                   dtype_name(output.buffer->dtype));
  }
  if (stage.reduce.empty() != (output.identity == nullptr)) {
    return invalid("stage {}: an identity belongs to reductions, and only to them", stage.name);
  }
  if (output.merge && !output.other)
    return invalid("stage {}: merge without the other part", stage.name);
  return ok_status();
}

Status verify_reads(const Dag& dag, const Stage& stage, const std::vector<BufferPtr>& written,
                    const std::vector<Axis>& axes) {
  for (const Access& access : reads(stage)) {
    const ir::Param* param = dag.find_param(access.buffer);
    const bool known = (param && param->role != ir::Role::kOutput) ||
                       std::count(written.begin(), written.end(), access.buffer) > 0 ||
                       !access.buffer->values.empty();
    if (!known)
      return invalid("stage {}: reads {} before it is written", stage.name, access.buffer->name);
    if (access.guarded || stage.where) continue;
    for (size_t d = 0; d < access.index.size(); ++d) {
      const auto [low, high] = range(access.index[d], axes);
      if (low < 0 || high >= access.buffer->shape[d]) {
        return invalid("stage {}: reads {} at {}..{} of dimension {} with extent {}", stage.name,
                       access.buffer->name, low, high, d, access.buffer->shape[d]);
      }
    }
  }
  return ok_status();
}

Status verify_axes(const std::vector<Axis>& axes, const Stage& stage) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].extent < 1) {
      return invalid("stage {}: axis {} has extent {}", stage.name, axes[i].var->name,
                     axes[i].extent);
    }
    for (size_t j = 0; j < i; ++j) {
      if (axes[i].var->name == axes[j].var->name)
        return invalid("stage {}: two axes are named {}", stage.name, axes[i].var->name);
    }
  }
  return ok_status();
}

// The buffers and variables that the body of an extern stage may use.
class ExternBody {
 public:
  explicit ExternBody(const Stage& stage) : stage_(stage), readable_(stage.extern_reads) {
    for (const Axis& axis : stage.axes) vars_.push_back(axis.var);
    for (const Output& output : stage.outputs) {
      readable_.push_back(output.buffer);
      writable_.push_back(output.buffer);
    }
  }

  Status check(const ir::Stmt& s) {
    for (const Expr& e : {s->min, s->extent}) HONE_RETURN_IF_ERROR(expression(e));
    if (s->var) vars_.push_back(s->var);
    for (const Expr& e : {s->condition, s->value}) HONE_RETURN_IF_ERROR(expression(e));
    for (const Expr& index : s->indices) HONE_RETURN_IF_ERROR(expression(index));
    if (s->kind == ir::StmtKind::kExtern)
      return invalid("stage {}: calls a function of another program", stage_.name);
    if (s->kind == ir::StmtKind::kAlloc) {
      readable_.push_back(s->buffer);
      writable_.push_back(s->buffer);
    }
    if (s->kind == ir::StmtKind::kStore) {
      if (std::count(writable_.begin(), writable_.end(), s->buffer) == 0)
        return invalid("stage {}: writes {}, which is none of its outputs", stage_.name,
                       s->buffer->name);
      if (s->indices.size() != s->buffer->shape.size())
        return invalid("stage {}: {} coordinates for {} of rank {}", stage_.name, s->indices.size(),
                       s->buffer->name, s->buffer->shape.size());
    }
    for (const ir::Stmt& child : s->body) HONE_RETURN_IF_ERROR(check(child));
    return ok_status();
  }

 private:
  Status expression(const Expr& e) const {
    Status status;
    if (!e) return status;
    ir::visit(e, [&](const Expr& node) {
      if (node->op == Op::kVar && std::count(vars_.begin(), vars_.end(), node->var) == 0)
        status = invalid("stage {}: unknown variable {}", stage_.name, node->var->name);
      if (node->op != Op::kLoad) return;
      if (std::count(readable_.begin(), readable_.end(), node->buffer) == 0)
        status = invalid("stage {}: reads {} undeclared", stage_.name, node->buffer->name);
      if (node->args.size() != node->buffer->shape.size())
        status = invalid("stage {}: {} indices into {} of rank {}", stage_.name, node->args.size(),
                         node->buffer->name, node->buffer->shape.size());
    });
    return status;
  }

  const Stage& stage_;
  std::vector<ir::VarPtr> vars_;
  std::vector<BufferPtr> readable_, writable_;
};

Status verify_extern(const Dag& dag, const Stage& stage, const std::vector<BufferPtr>& written) {
  if (!stage.reduce.empty() || stage.where)
    return invalid("stage {}: an extern stage has neither reduce axes nor a condition", stage.name);
  for (const BufferPtr& buffer : stage.extern_reads) {
    const ir::Param* param = dag.find_param(buffer);
    if (!(param && param->role != ir::Role::kOutput) &&
        std::count(written.begin(), written.end(), buffer) == 0)
      return invalid("stage {}: reads {} before it is written", stage.name, buffer->name);
  }
  for (const Output& output : stage.outputs) {
    const ir::Param* param = dag.find_param(output.buffer);
    if (param && param->role != ir::Role::kOutput)
      return invalid("stage {}: writes {}, which is no output", stage.name, output.buffer->name);
    if (dag.writers(output.buffer).size() != 1)
      return invalid("stage {}: {} has other writers", stage.name, output.buffer->name);
  }
  ExternBody body(stage);
  for (const ir::Stmt& s : stage.body) HONE_RETURN_IF_ERROR(body.check(s));
  return ok_status();
}

// Terms end where the other axes say, or at a multiple of a size of the run and a constant.
Status verify_until(const Stage& stage) {
  const ir::Linear form = ir::linearize(stage.until);
  const auto is_size = [&] {
    const auto& [load, unit] = form.terms[0];
    return load->op == Op::kLoad && load->args.size() == 1 && ir::is_const_int(load->args[0]) &&
           load->args[0]->int_value >= 0 && unit > 0;
  };
  if (stage.reduce.size() == 1 && form.terms.size() == 1 && is_size()) return ok_status();
  std::vector<ir::VarPtr> spatial;
  for (const Axis& axis : stage.axes) spatial.push_back(axis.var);
  const std::optional<AffineRow> row = affine_row(stage.until, spatial);
  const bool moves = row && std::any_of(row->coef.begin(), row->coef.end(),
                                        [](int64_t coef) { return coef != 0; });
  if (stage.reduce.size() != 1 || !moves) {
    return invalid(
        "stage {}: its terms end at {}, expected one reduce axis and an affine form that moves with "
        "the other axes",
        stage.name, ir::print(stage.until));
  }
  return ok_status();
}

}  // namespace

Status verify(const Dag& dag) {
  std::vector<BufferPtr> written;
  std::vector<std::string> names;
  for (const Stage& stage : dag.stages) {
    if (std::count(names.begin(), names.end(), stage.name) > 0) {
      return invalid("two stages are named {}", stage.name);
    }
    names.push_back(stage.name);
    if (stage.outputs.empty()) return invalid("stage {}: no output", stage.name);
    const std::vector<Axis> axes = stage_axes(stage);
    HONE_RETURN_IF_ERROR(verify_axes(axes, stage));
    if (stage.is_extern()) {
      HONE_RETURN_IF_ERROR(verify_extern(dag, stage, written));
    } else {
      const std::vector<ir::VarPtr> vars = stage_vars(stage);
      if (stage.where && !affine_guards(stage.where, vars)) {
        return invalid("stage {}: where is no conjunction of affine comparisons", stage.name);
      }
      if (stage.until) HONE_RETURN_IF_ERROR(verify_until(stage));
      for (const Output& output : stage.outputs) {
        HONE_RETURN_IF_ERROR(verify_output(dag, stage, output, vars, axes));
      }
      HONE_RETURN_IF_ERROR(verify_reads(dag, stage, written, axes));
    }
    for (const Output& output : stage.outputs) written.push_back(output.buffer);
  }
  for (const ir::Param& param : dag.params) {
    if (param.role == ir::Role::kOutput && dag.writers(param.buffer).empty()) {
      return invalid("output {} is never written", param.buffer->name);
    }
  }
  return ok_status();
}

}  // namespace hone::compute
