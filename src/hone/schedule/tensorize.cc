#include "hone/schedule/tensorize.h"

#include <algorithm>
#include <array>

#include "hone/ir/linear.h"
#include "hone/ir/simplify.h"
#include "hone/schedule/matrix_product.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;

// What a factor loads, which it may widen; null if it is something else.
const ir::ExprNode* load_of(const Expr& factor) {
  const Expr& e = factor->op == Op::kCast ? factor->args[0] : factor;
  return e->op == Op::kLoad ? e.get() : nullptr;
}

bool uses_loop(const Expr& e, const ir::VarPtr& var) { return ir::uses(e, var.get()); }

// Makes boxes that begin where the variables of the matrix loops are 0.
class BoxMaker {
 public:
  BoxMaker(const State& state, const Bounds& bounds, const IndexMap& index, int s)
      : state_(state), index_(index), s_(s) {
    for (size_t i = 0; i < state.stages.size(); ++i) {
      for (const int leaf : state.stages[i].order) {
        const int64_t extent = bounds.stages[i].loops[static_cast<size_t>(leaf)].extent;
        ranges_.bind(index.variable(static_cast<int>(i), leaf), {0, extent - 1});
      }
    }
    axes_ = index.axis_values(s);
  }

  // A loop over rows or columns of the box.
  struct Side {
    ir::VarPtr var;
    int64_t extent;
  };

  Result<ir::Box> make(const ir::BufferPtr& logical, const std::vector<Expr>& at, const Side& rows,
                       const Side& columns, const Side& other) const {
    std::vector<Expr> indices;
    for (const Expr& e : at) indices.push_back(ir::substitute(e, axes_));
    ir::Box box{
        index_.physical_buffer(logical), index_.physical_indices(logical, indices, s_), {}, false};
    int row = -1, column = -1;
    for (size_t d = 0; d < box.indices.size(); ++d) {
      Expr& e = box.indices[d];
      e = ir::simplify(e, ranges_);
      int64_t extent = 1;
      for (const Side& side : {rows, columns}) {
        if (!uses_loop(e, side.var)) continue;
        int& found = side.var == rows.var ? row : column;
        const ir::Linear form = ir::linearize(e);
        const Expr rest = ir::to_expr(ir::without(form, ir::variable(side.var)));
        if (form.coefficient(side.var) != 1 || found >= 0 || extent > 1 ||
            uses_loop(rest, side.var))
          return misplaced(*logical, side.var->name);
        found = static_cast<int>(d);
        extent = side.extent;
      }
      if (uses_loop(e, other.var)) return misplaced(*logical, other.var->name);
      e = ir::simplify(
          ir::substitute(e, {{rows.var, ir::constant(0)}, {columns.var, ir::constant(0)}}),
          ranges_);
      box.extents.push_back(extent);
    }
    if (row < 0 || column < 0)
      return misplaced(*logical, row < 0 ? rows.var->name : columns.var->name);
    box.transposed = column < row;
    return box;
  }

 private:
  [[nodiscard]] Status misplaced(const ir::Buffer& buffer, const std::string& loop) const {
    return invalid("{}: the matrix loop {} is not one dimension of {}",
                   state_.stages[static_cast<size_t>(s_)].name(), loop, buffer.name);
  }

  const State& state_;
  const IndexMap& index_;
  int s_;
  ir::Ranges ranges_;
  ir::VarMap axes_;
};

// The matrix loops of a stage by what they run over, as leaves: rows, columns, terms.
std::array<int, 3> loops_by_role(const StageState& stage) {
  std::array<int, 3> loops = {-1, -1, -1};
  for (const int leaf : stage.order) {
    const Loop& loop = stage.loops[static_cast<size_t>(leaf)];
    if (loop.annotation == Annotation::kMatrix) loops[static_cast<size_t>(loop.matrix_role)] = leaf;
  }
  return loops;
}

}  // namespace

Status tensorize(const Tensorize& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  StageState& stage = state.stages[static_cast<size_t>(index)];
  const std::optional<ProductTerms> factors = product_terms(stage.info->stage);
  const ir::ExprNode* first = factors ? load_of(factors->first) : nullptr;
  const ir::ExprNode* second = factors ? load_of(factors->second) : nullptr;
  if (first == nullptr || second == nullptr)
    return invalid("{} is no sum of products of elements in float32", step.stage);
  const DType type = first->type;
  const bool rounds = type == DType::kF32;
  if (type != second->type || (!rounds && type != DType::kF16 && type != DType::kBF16))
    return invalid("{} has factors of {} and {}", step.stage, dtype_name(type),
                   dtype_name(second->type));
  if (rounds != (step.rounding == Rounding::kTf32))
    return invalid(
        "factors of {} {}", dtype_name(type),
        rounds ? "are rounded to tf32, which the step does not say" : "are not rounded to tf32");
  const std::string* names[] = {&step.rows, &step.columns, &step.terms};
  for (int8_t role = 0; role < 3; ++role) {
    const int leaf = stage.find_loop(*names[role]);
    if (leaf < 0) return invalid("{} has no loop {}", step.stage, *names[role]);
    Loop& loop = stage.loops[static_cast<size_t>(leaf)];
    if (loop.annotation != Annotation::kNone) return invalid("loop {} is annotated", loop.name);
    if (loop.reduce != (role == 2))
      return invalid("loop {} is {} reduction", loop.name, loop.reduce ? "a" : "no");
    for (const StageState& other : state.stages) {
      for (const Place* place : {&other.compute, &other.store}) {
        if (place->kind == AttachKind::kAt && place->stage == index && place->loop == leaf)
          return invalid("loop {} holds other stages", loop.name);
      }
    }
    loop.annotation = Annotation::kMatrix;
    loop.matrix_role = role;
  }
  return ok_status();
}

int first_matrix_loop(const StageState& stage) {
  for (size_t i = 0; i < stage.order.size(); ++i) {
    if (stage.loops[static_cast<size_t>(stage.order[i])].annotation == Annotation::kMatrix)
      return static_cast<int>(i);
  }
  return -1;
}

Status check_tensorized(const State& state, int s) {
  const StageState& stage = state.stages[static_cast<size_t>(s)];
  const int first = first_matrix_loop(stage);
  if (first < 0) return ok_status();
  if (first + 3 != std::ssize(stage.order))
    return invalid("{}: its matrix loops are not the three innermost ones", stage.name());
  const auto threads = stage.thread_loops();
  const bool of_warps =
      stage.scope == ir::Scope::kFragment && !threads.empty() &&
      std::all_of(threads.begin(), threads.end(), [&](int leaf) {
        return stage.loops[static_cast<size_t>(leaf)].annotation == Annotation::kWarp;
      });
  if (!of_warps)
    return invalid("{} is computed by matrix instructions, but not into a fragment of warps",
                   stage.name());
  return ok_status();
}

Result<ir::Stmt> matrix_statement(const State& state, const Bounds& bounds, const IndexMap& index,
                                  int s) {
  const StageState& stage = state.stages[static_cast<size_t>(s)];
  const compute::Output& output = stage.info->stage.outputs[0];
  const ProductTerms factors = *product_terms(stage.info->stage);
  const auto side = [&](int leaf) {
    return BoxMaker::Side{
        index.variable(s, leaf),
        bounds.stages[static_cast<size_t>(s)].loops[static_cast<size_t>(leaf)].extent};
  };
  const auto [m, n, k] = loops_by_role(stage);
  const BoxMaker::Side rows = side(m), columns = side(n), terms = side(k);
  const BoxMaker boxes(state, bounds, index, s);
  HONE_ASSIGN_OR_RETURN(ir::Box d, boxes.make(output.buffer, output.write, rows, columns, terms));
  const ir::ExprNode &first = *load_of(factors.first), &second = *load_of(factors.second);
  Result<ir::Box> a = boxes.make(first.buffer, first.args, rows, terms, columns);
  const bool in_order = a.ok();
  if (!in_order) a = boxes.make(second.buffer, second.args, rows, terms, columns);
  if (!a.ok()) return a.status();
  const ir::ExprNode& other = in_order ? second : first;
  HONE_ASSIGN_OR_RETURN(ir::Box b, boxes.make(other.buffer, other.args, terms, columns, rows));
  return ir::make_matrix(std::move(d), *std::move(a), std::move(b));
}

}  // namespace hone::schedule
