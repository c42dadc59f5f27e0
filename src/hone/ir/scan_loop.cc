#include "hone/ir/scan_loop.h"

#include <algorithm>
#include <cstdlib>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"

namespace hone::ir {
namespace {

bool is_load_of(const Expr& e, const StmtNode& store) {
  return e->op == Op::kLoad && e->buffer == store.buffer &&
         std::equal(e->args.begin(), e->args.end(), store.indices.begin(), store.indices.end(),
                    [](const Expr& a, const Expr& b) { return equal(a, b); });
}

// The operator of the chain that leads from the root to the only load of the store's own element.
bool is_chain(const Expr& e, const StmtNode& store, std::optional<Op>& op) {
  if (is_load_of(e, store)) return true;
  if (is_nan_or_extreme(e) && !op && !loads_from(e->args[1], store.buffer.get()))
    return is_chain(e->args[2], store, op);
  if (e->op != Op::kAdd && e->op != Op::kSub && e->op != Op::kMul && e->op != Op::kMin &&
      e->op != Op::kMax) {
    return false;
  }
  const Op kind = e->op == Op::kSub ? Op::kAdd : e->op;
  if (op && *op != kind) return false;
  op = kind;
  const bool left = loads_from(e->args[0], store.buffer.get());
  const bool right = loads_from(e->args[1], store.buffer.get());
  if (left == right || (right && e->op == Op::kSub)) return false;
  return is_chain(e->args[left ? 0 : 1], store, op);
}

class ScanLoop {
 public:
  explicit ScanLoop(const StmtNode& loop) : lane_(loop.var.get()) {
    ok_ = loop.kind == StmtKind::kFor && visit_all(loop.body) && hands_on_;
    for (const Expr& e : values_) {
      for (const Buffer* buffer : written_) ok_ = ok_ && !loads_from(e, buffer);
    }
  }
  [[nodiscard]] std::optional<Scan> found() && {
    return ok_ ? std::optional(std::move(scan_)) : std::nullopt;
  }

 private:
  [[nodiscard]] bool is_same(const Expr& e) const { return !uses(e, lane_) && !has_load(e); }

  // Statements that run one behind the other; false: no part of a scan.
  bool visit_all(const std::vector<Stmt>& body) {
    std::vector<const StmtNode*> updates, stores;
    for (const Stmt& s : body) {
      const bool unrolled = s->kind == StmtKind::kFor && s->for_kind == ForKind::kUnrolled &&
                            is_const_int(s->min) && is_const_int(s->extent);
      if (s->kind == StmtKind::kStore) {
        (is_update(*s) ? updates : stores).push_back(s.get());
      } else if (!unrolled && (s->kind != StmtKind::kIf || !is_same(s->condition))) {
        return false;
      } else {
        const bool repeats = unrolled && !is_const_int(s->extent, 1);
        if (repeats) unrolled_.push_back(s->var);
        if (!visit_all(s->body)) return false;
        if (repeats) unrolled_.pop_back();
      }
    }
    for (const StmtNode* update : updates) {
      if (!reads_only(*update, {update}) || !differs(*update) || !insert(carried_, *update))
        return false;
      scan_.updates.push_back(update);
    }
    return std::all_of(stores.begin(), stores.end(), [&](const StmtNode* store) {
      const auto moves = [&](const Expr& index) { return uses(index, lane_); };
      return std::any_of(store->indices.begin(), store->indices.end(), moves) &&
             std::none_of(store->indices.begin(), store->indices.end(), has_load) &&
             reads_only(*store, updates) && insert(written_, *store);
    });
  }

  // Iterations of the unrolled loops around it store to different elements: each of their
  // variables is in an index without the others.
  [[nodiscard]] bool differs(const StmtNode& update) const {
    return std::all_of(unrolled_.begin(), unrolled_.end(), [&](const VarPtr& var) {
      return std::any_of(update.indices.begin(), update.indices.end(), [&](const Expr& index) {
        return moves_by_one(index, var) &&
               std::none_of(unrolled_.begin(), unrolled_.end(), [&](const VarPtr& other) {
                 return other != var && uses(index, other.get());
               });
      });
    });
  }

  static bool insert(std::vector<const Buffer*>& buffers, const StmtNode& store) {
    if (std::count(buffers.begin(), buffers.end(), store.buffer.get()) > 0) return false;
    buffers.push_back(store.buffer.get());
    return true;
  }

  // Returns whether, of the memory that the program allocates, the store loads only the elements of
  // these updates.
  bool reads_only(const StmtNode& store, const std::vector<const StmtNode*>& updates) {
    values_.push_back(store.value);
    bool only = true;
    visit(store.value, [&](const Expr& e) {
      if (e->op != Op::kLoad || e->buffer->scope == Scope::kGlobal) return;
      only = only && std::any_of(updates.begin(), updates.end(),
                                 [&](const StmtNode* update) { return is_load_of(e, *update); });
      hands_on_ |= only && !updates.empty() && updates[0] != &store;
    });
    return only;
  }

  [[nodiscard]] bool is_update(const StmtNode& s) const {
    const DType type = s.buffer->dtype;
    if (s.buffer->scope == Scope::kGlobal || type == DType::kBool || dtype_bytes(type) < 4)
      return false;
    // Parts of a product of floats may overflow where all of it does not: 1e-30, 1e30, 1e30.
    const std::optional<Op> op = reduction_op(s);
    return op && (*op == Op::kAdd || (*op == Op::kMul && !is_float(type))) &&
           std::all_of(s.indices.begin(), s.indices.end(),
                       [&](const Expr& index) { return is_same(index); });
  }

  const Var* lane_;
  bool ok_ = false;
  Scan scan_;
  bool hands_on_ = false;  // some store reads what has been summed up: else it is a plain sum
  std::vector<VarPtr> unrolled_;  // around the statement that is looked at
  std::vector<const Buffer*> carried_, written_;
  std::vector<Expr> values_;
};

}  // namespace

std::optional<Op> reduction_op(const StmtNode& store) {
  std::optional<Op> op;
  if (!is_chain(store.value, store, op)) return std::nullopt;
  return op;
}

bool is_nan_or_extreme(const Expr& e) {
  if (e->op != Op::kSelect || e->args[0]->op != Op::kNe || !is_float(e->type)) return false;
  const Expr &element = e->args[1], &extreme = e->args[2];
  return (extreme->op == Op::kMax || extreme->op == Op::kMin) &&
         equal(e->args[0]->args[0], element) && equal(e->args[0]->args[1], element) &&
         equal(extreme->args[0], element);
}

bool moves_by_one(const Expr& index, const VarPtr& var) {
  if (has_load(index)) return false;
  const Linear form = linearize(index);
  return std::abs(form.coefficient(var)) == 1 && !depends(without(form, variable(var)), var);
}

std::optional<Scan> find_scan(const StmtNode& loop) { return ScanLoop(loop).found(); }

}  // namespace hone::ir
