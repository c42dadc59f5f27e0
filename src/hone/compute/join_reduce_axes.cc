#include "hone/compute/join_reduce_axes.h"

#include <algorithm>

#include "hone/compute/affine.h"
#include "hone/ir/linear.h"

namespace hone::compute {
namespace {

// Two neighbouring reduce axes of a stage and the operand whose last two dimensions they are, if
// they occur nowhere else.
class Pair {
 public:
  Pair(const Stage& stage, const Axis& first, const Axis& second) : first_(first), second_(second) {
    for (const Output& output : stage.outputs) {
      for (const ir::Expr& expr : {output.value, output.identity, output.merge}) {
        if (expr) look_at(expr);
      }
    }
  }

  // Returns null if the axes are not like that.
  [[nodiscard]] const ir::BufferPtr& operand() const { return fits_ ? operand_ : kNone; }

 private:
  [[nodiscard]] bool names(const ir::Expr& e) const {
    return ir::uses(e, first_.var.get()) || ir::uses(e, second_.var.get());
  }

  void look_at(const ir::Expr& e) {
    if (!names(e)) return;
    if (e->op != ir::Op::kLoad) {
      fits_ = fits_ && e->op != ir::Op::kVar;
      for (const ir::Expr& arg : e->args) look_at(arg);
      return;
    }
    const size_t rank = e->args.size();
    const bool last = rank >= 2 && e->args[rank - 2]->var == first_.var &&
                      e->args[rank - 1]->var == second_.var &&
                      e->buffer->shape[rank - 1] == second_.extent &&
                      std::none_of(e->args.begin(), e->args.end() - 2,
                                   [&](const ir::Expr& index) { return names(index); });
    fits_ = fits_ && last && (!operand_ || operand_ == e->buffer);
    operand_ = e->buffer;
  }

  static inline const ir::BufferPtr kNone = nullptr;
  const Axis &first_, &second_;
  ir::BufferPtr operand_;
  bool fits_ = true;
};

bool may_lose_a_dimension(const Dag& dag, const Stage& stage, const ir::BufferPtr& buffer) {
  const ir::Param* param = dag.find_param(buffer);
  if (!param || param->role == ir::Role::kOutput || !buffer->values.empty()) return false;
  const std::vector<int> readers = dag.readers(buffer);
  if (readers.size() != 1 || &dag.stages[static_cast<size_t>(readers[0])] != &stage) return false;
  const std::vector<Access> all = reads(stage);
  return std::count_if(all.begin(), all.end(),
                       [&](const Access& read) { return read.buffer == buffer; }) == 1;
}

// `axis` and the next one of the stage's reduction, the last two dimensions of the operand.
void join(Dag& dag, Stage& stage, size_t axis, const ir::BufferPtr& operand) {
  ir::Buffer copy = *operand;
  copy.shape.pop_back();
  copy.shape.back() *= operand->shape.back();
  const auto flat = std::make_shared<const ir::Buffer>(std::move(copy));
  const Axis first = stage.reduce[axis], second = stage.reduce[axis + 1];
  const Axis joined =
      make_axis(first.var->name + "_" + second.var->name, first.extent * second.extent);
  stage.reduce[axis] = joined;
  stage.reduce.erase(stage.reduce.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  const auto load = [&](const ir::Expr& e) -> ir::Expr {
    if (e->buffer != operand) return nullptr;
    std::vector<ir::Expr> at(e->args.begin(), e->args.end() - 1);
    at.back() = ir::variable(joined.var);
    return ir::load(flat, std::move(at));
  };
  for (Output& output : stage.outputs) {
    for (ir::Expr* expr : {&output.value, &output.identity, &output.merge}) {
      if (*expr) *expr = ir::rewrite(*expr, load);
    }
  }
  for (ir::Param& param : dag.params) {
    if (param.buffer == operand) param.buffer = flat;
  }
}

}  // namespace

Dag join_reduce_axes(Dag dag) {
  for (Stage& stage : dag.stages) {
    if (stage.is_extern() || stage.where || stage.until) continue;
    for (size_t i = stage.reduce.size(); i-- > 1;) {
      const ir::BufferPtr operand = Pair(stage, stage.reduce[i - 1], stage.reduce[i]).operand();
      if (operand && may_lose_a_dimension(dag, stage, operand)) join(dag, stage, i - 1, operand);
    }
  }
  return dag;
}

}  // namespace hone::compute
