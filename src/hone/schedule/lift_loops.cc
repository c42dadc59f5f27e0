#include "hone/schedule/lift_loops.h"

#include <algorithm>
#include <optional>

#include "hone/ir/linear.h"
#include "hone/ir/visit.h"

namespace hone::schedule {
namespace {

using compute::Stage;
using ir::Expr;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

// The loops of one name in a body, and whether they can be lifted.
class NamedLoops {
 public:
  NamedLoops(const Stage& stage, std::string_view name) : stage_(stage), name_(name) {
    for (const Stmt& s : stage.body) visit(*s, nullptr);
    for (const compute::Axis& axis : stage.axes) is_legal_ &= axis.var->name != name;
  }
  [[nodiscard]] bool is_legal() const { return is_legal_ && extent_ > 0; }
  [[nodiscard]] int64_t extent() const { return extent_; }
  [[nodiscard]] bool is_store() const { return is_store_; }

 private:
  [[nodiscard]] bool is_result(const ir::BufferPtr& buffer) const {
    return std::any_of(stage_.outputs.begin(), stage_.outputs.end(),
                       [&](const compute::Output& output) { return output.buffer == buffer; });
  }

  // `around`: the loop of that name around the statement; null if there is none.
  void visit(const StmtNode& s, const StmtNode* around) {
    if (s.kind == StmtKind::kFor && s.var->name == name_) {
      is_legal_ &= around == nullptr && ir::is_const_int(s.min, 0) && ir::is_const_int(s.extent) &&
                   s.extent->int_value > 0 && !ir::is_thread_loop(s.for_kind);
      if (!is_legal_) return;
      is_legal_ &= extent_ == 0 || extent_ == s.extent->int_value;
      extent_ = s.extent->int_value;
      is_store_ &= s.body.size() == 1 && s.body[0]->kind == StmtKind::kStore;
      around = &s;
    }
    is_legal_ &= s.kind == StmtKind::kFor || s.kind == StmtKind::kIf ||
                 s.kind == StmtKind::kBlock || s.kind == StmtKind::kAlloc ||
                 s.kind == StmtKind::kStore;
    if (s.kind == StmtKind::kAlloc) local_.emplace_back(s.buffer.get(), around);
    if (s.kind == StmtKind::kStore) store(s, around);
    ir::for_each_expr(s, [&](const Expr& whole) {
      ir::visit(whole, [&](const Expr& e) {
        if (e->op == ir::Op::kLoad && is_result(e->buffer)) access(e->buffer, e->args, around);
      });
    });
    for (const Stmt& child : s.body) visit(*child, around);
  }

  void store(const StmtNode& s, const StmtNode* around) {
    if (is_result(s.buffer)) return access(s.buffer, s.indices, around);
    // What an iteration keeps must be its own.
    const auto own = std::find_if(local_.begin(), local_.end(),
                                  [&](const auto& local) { return local.first == s.buffer.get(); });
    is_legal_ &= own != local_.end() && own->second == around;
  }

  // All accesses to a result have the variable alone, in the same dimension.
  void access(const ir::BufferPtr& buffer, const std::vector<Expr>& indices,
              const StmtNode* around) {
    if (around == nullptr) return void(is_legal_ = false);
    const auto at = std::find_if(indices.begin(), indices.end(), [&](const Expr& index) {
      return index->op == ir::Op::kVar && index->var == around->var;
    });
    const auto known = std::find_if(dims_.begin(), dims_.end(),
                                    [&](const auto& dim) { return dim.first == buffer; });
    if (at == indices.end()) return void(is_legal_ = false);
    if (known == dims_.end()) {
      dims_.emplace_back(buffer, at - indices.begin());
    } else {
      is_legal_ &= known->second == at - indices.begin();
    }
  }

  const Stage& stage_;
  std::string_view name_;
  int64_t extent_ = 0;
  bool is_legal_ = true, is_store_ = true;
  std::vector<std::pair<const ir::Buffer*, const StmtNode*>> local_;
  std::vector<std::pair<ir::BufferPtr, std::ptrdiff_t>> dims_;
};

// One loop becomes an axis; with `vector` above 1 an iteration has so many elements.
Result<Stage> lift_one(const Stage& stage, const std::string& name, int64_t vector) {
  const NamedLoops loops(stage, name);
  if (!loops.is_legal()) return invalid("{} has no loop {} that can be lifted", stage.name, name);
  if (vector < 1 || loops.extent() % vector != 0)
    return invalid("{} has {} iterations of {}, no vectors of {}", stage.name, loops.extent(), name,
                   vector);
  Stage lifted = stage;
  lifted.axes.push_back(compute::make_axis(name, loops.extent() / vector));
  const Expr point = ir::variable(lifted.axes.back().var);
  for (Stmt& s : lifted.body) {
    s = ir::rewrite_stmts(s, [&](const Stmt& loop) {
      if (loop->kind != StmtKind::kFor || loop->var->name != name) return loop;
      const auto placed = [&](const Expr& at) {
        std::vector<Stmt> body;
        for (const Stmt& child : loop->body)
          body.push_back(ir::substitute(child, {{loop->var, at}}));
        return body;
      };
      if (vector == 1) return ir::make_block(placed(point));
      const ir::VarPtr lane = ir::make_var("v");
      return ir::make_for(lane, ir::constant(0), ir::constant(vector), ir::ForKind::kVectorized,
                          placed(point * vector + ir::variable(lane)));
    });
  }
  return lifted;
}

}  // namespace

Result<Stage> lift_loops(const Stage& stage, const Lift& step) {
  if (!stage.is_extern()) return invalid("{} has no body", step.stage);
  if (step.loops.empty()) return invalid("no loop of {} is named", step.stage);
  Stage lifted = stage;
  for (const std::string& loop : step.loops) {
    const int64_t vector = &loop == &step.loops.back() ? step.vector : 1;
    HONE_ASSIGN_OR_RETURN(lifted, lift_one(lifted, loop, vector));
  }
  return lifted;
}

std::vector<LiftableLoop> liftable_loops(const Stage& stage) {
  std::vector<std::string> names;
  for (const Stmt& s : stage.body) {
    ir::for_each_stmt(*s, [&](const StmtNode& loop) {
      if (loop.kind == StmtKind::kFor &&
          std::count(names.begin(), names.end(), loop.var->name) == 0)
        names.push_back(loop.var->name);
    });
  }
  std::vector<LiftableLoop> found;
  Stage rest = stage;
  for (const std::string& name : names) {
    const NamedLoops loops(rest, name);
    if (!loops.is_legal()) continue;
    found.push_back({name, loops.extent(), loops.is_store()});
    Result<Stage> lifted = lift_one(rest, name, 1);
    if (lifted.ok()) rest = *std::move(lifted);
  }
  return found;
}

int64_t body_stride(const Stage& stage, const ir::VarPtr& axis) {
  std::optional<int64_t> stride;
  for (const Stmt& s : stage.body) {
    ir::for_each_stmt(*s, [&](const StmtNode& store) {
      if (stride || store.kind != StmtKind::kStore || store.buffer != stage.outputs[0].buffer)
        return;
      stride = 0;
      int64_t elements = 1;
      for (size_t d = store.indices.size(); d-- > 0;) {
        *stride += ir::linearize(store.indices[d]).coefficient(axis) * elements;
        elements *= store.buffer->shape[d];
      }
    });
  }
  return stride.value_or(0);
}

}  // namespace hone::schedule
