#include "hone/compute/bytes_moved.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hone/compute/affine.h"

namespace hone::compute {
namespace {

using ir::Expr;

// Elements that one access touches: along each dimension no more than the axes that move it can
// reach, nor than they have points. Axes of no other use do not count.
double touched(const ir::Buffer& buffer, const std::vector<AffineRow>& index,
               const std::vector<Axis>& axes) {
  double elements = 1;
  for (size_t d = 0; d < index.size(); ++d) {
    double reach = 1, points = 1;
    for (size_t a = 0; a < index[d].coef.size(); ++a) {
      if (index[d].coef[a] == 0) continue;
      const auto extent = static_cast<double>(axes[a].extent);
      reach += std::abs(static_cast<double>(index[d].coef[a])) * (extent - 1);
      points *= extent;
    }
    elements *= std::min({reach, points, static_cast<double>(buffer.shape[d])});
  }
  return elements;
}

// Adds how often each buffer is loaded from by a body that runs `times` times.
class LoadCounter {
 public:
  void add(const ir::Stmt& s, double times) {
    for (const Expr& index : s->indices) add(index, times);
    for (const Expr& e : {s->condition, s->value, s->min, s->extent}) {
      if (e) add(e, times);
    }
    // A loop whose length is not known counts as having many iterations.
    const bool loop = s->kind == ir::StmtKind::kFor;
    const double each = !loop                         ? 1
                        : ir::is_const_int(s->extent) ? static_cast<double>(s->extent->int_value)
                                                      : kMany;
    for (const ir::Stmt& child : s->body) add(child, times * each);
    if (s->kind != ir::StmtKind::kExtern) return;
    for (const ir::BufferPtr& buffer : s->buffers) loads_[buffer.get()] += kMany;
  }
  [[nodiscard]] double loads(const ir::BufferPtr& buffer) const {
    const auto found = loads_.find(buffer.get());
    return found == loads_.end() ? 0 : found->second;
  }

 private:
  static constexpr double kMany = 1e18;
  void add(const Expr& e, double times) {
    ir::visit(e, [&](const Expr& node) {
      if (node->op == ir::Op::kLoad) loads_[node->buffer.get()] += times;
    });
  }
  std::map<const ir::Buffer*, double> loads_;  // only looked up: the order does not matter
};

double read_by(const Stage& stage, const ir::BufferPtr& buffer) {
  double elements = 0;
  if (stage.is_extern()) {
    LoadCounter counter;
    double points = 1;
    for (const Axis& axis : stage.axes) points *= static_cast<double>(axis.extent);
    for (const ir::Stmt& s : stage.body) counter.add(s, points);
    return counter.loads(buffer);
  }
  const std::vector<Axis> axes = stage_axes(stage);
  for (const Access& access : reads(stage)) {
    if (access.buffer == buffer) elements += touched(*buffer, access.index, axes);
  }
  return elements;
}

double written_by(const Stage& stage, const ir::BufferPtr& buffer) {
  double elements = 0;
  for (const Output& output : stage.outputs) {
    if (output.buffer != buffer) continue;
    if (stage.is_extern()) return static_cast<double>(buffer->num_elements());
    elements += touched(*buffer, write_rows(stage, output), stage.axes);
  }
  return elements;
}

}  // namespace

double bytes_moved(const Dag& dag, double constants) {
  double bytes = 0;
  for (const ir::Param& param : dag.params) {
    double elements = 0;
    for (const Stage& stage : dag.stages) {
      elements += param.role == ir::Role::kOutput ? written_by(stage, param.buffer)
                                                  : read_by(stage, param.buffer);
    }
    const auto all = static_cast<double>(param.buffer->num_elements());
    const double share = param.role == ir::Role::kConstant ? constants : 1;
    bytes +=
        share * std::min(elements, all) * static_cast<double>(dtype_bytes(param.buffer->dtype));
  }
  return bytes;
}

}  // namespace hone::compute
