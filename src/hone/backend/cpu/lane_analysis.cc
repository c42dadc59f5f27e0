#include "hone/backend/cpu/lane_analysis.h"

#include <algorithm>
#include <set>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"

namespace hone::backend::cpu {
namespace {

using ir::Expr;
using ir::Op;
using ir::StmtKind;
using ir::StmtNode;

struct LaneVisitor {
  const ir::Var* lane;
  LaneUse use;
  std::set<const ir::Buffer*> inner;      // allocated in the body: one copy per lane
  std::set<const ir::Buffer*> lane_free;  // stored at an index without the lane
  std::vector<const StmtNode*> stores;

  bool varies(const Expr& e) const {
    bool found = false;
    ir::visit(e, [&](const Expr& node) {
      found |= node->op == Op::kVar && node->var.get() == lane;
      found |= node->op == Op::kLoad &&
               (inner.contains(node->buffer.get()) || lane_free.contains(node->buffer.get()));
    });
    return found;
  }
  void note_type(DType type) {
    use.facts.element_bytes =
        std::max(use.facts.element_bytes, static_cast<int>(dtype_bytes(type)));
  }
  // Notes the widths of values that are computed in vectors. Addresses with a constant stride are
  // not, nor are tests and casts of uniform values: a row's number of 64 bits does not halve the
  // number of lanes of 32 bits.
  void note_width(const Expr& e) {
    const bool is_load = e->op == Op::kLoad;
    if (is_load || is_float(e->type)) note_type(e->type);
    if (is_load && e->buffer->scope == ir::Scope::kRegister) note_indices(e->args);
    for (size_t i = 0; i < e->args.size(); ++i) {
      const Expr& arg = e->args[i];
      const bool may_be_scalar = e->op == Op::kCast || (e->op == Op::kSelect && i == 0);
      const bool scalar = is_load ? is_strided(arg) : may_be_scalar && !varies(arg);
      if (!scalar) note_width(arg);
    }
  }
  // Returns whether the lane only adds a multiple of its number.
  bool is_strided(const Expr& index) const {
    const ir::Linear form = ir::linearize(index);
    return std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
      return term.first->op == Op::kVar || !varies(term.first);
    });
  }
  void note_indices(const std::vector<Expr>& indices) {
    for (const Expr& i : indices) use.facts.fixed_indices |= ir::uses(i, lane);
  }

  bool scan(const StmtNode& s, bool direct) {
    switch (s.kind) {
      case StmtKind::kExtern: return false;
      case StmtKind::kFor:
        if (s.for_kind == ir::ForKind::kVectorized || varies(s.min) || varies(s.extent))
          return false;
        return scan_all(s.body, false);
      case StmtKind::kIf:
        if (varies(s.condition)) note_width(s.condition);
        return scan_all(s.body, direct);
      case StmtKind::kAlloc:
        inner.insert(s.buffer.get());
        note_type(s.buffer->dtype);
        return scan_all(s.body, false);
      case StmtKind::kBlock: return scan_all(s.body, direct);
      case StmtKind::kPrefetch: return true;
      case StmtKind::kStore: return scan_store(s, direct);
      default: return false;
    }
  }
  bool scan_all(const std::vector<ir::Stmt>& body, bool direct) {
    return std::all_of(body.begin(), body.end(),
                       [&](const ir::Stmt& s) { return scan(*s, direct); });
  }
  bool scan_store(const StmtNode& s, bool direct) {
    stores.push_back(&s);
    note_width(s.value);
    note_type(s.buffer->dtype);
    if (s.buffer->scope == ir::Scope::kRegister) note_indices(s.indices);
    bool index_varies = inner.contains(s.buffer.get());
    bool index_loads = false;
    for (const Expr& i : s.indices) {
      index_varies |= ir::uses(i, lane);
      ir::visit(i, [&](const Expr& node) { index_loads |= node->op == Op::kLoad; });
    }
    if (index_varies) return true;
    if (index_loads) return false;
    lane_free.insert(s.buffer.get());
    const std::optional<Op> op = reduction_op(s);
    if (!op) return !varies(s.value) && !ir::loads_from(s.value, s.buffer.get());
    if (s.buffer->dtype == DType::kBool || loads_elsewhere(s)) return false;
    if (direct && *op != Op::kMul) use.partials.push_back(&s);
    return true;
  }
  void note_stores(const StmtNode& s) {
    if (s.kind == StmtKind::kStore) {
      note_width(s.value);
      note_type(s.buffer->dtype);
      if (s.buffer->scope == ir::Scope::kRegister) note_indices(s.indices);
    }
    for (const ir::Stmt& child : s.body) note_stores(*child);
  }
  void scan_filter(const StmtNode& s) {
    use.facts.vectorizable = use.facts.filters = true;
    note_width(s.condition);
    for (size_t i = 0; i + 1 < s.body.size(); ++i) {
      note_width(s.body[i]->value);
      note_type(s.body[i]->buffer->dtype);
    }
  }
  // x itself is exempt: reduction_op saw that it occurs once. So is another element's reduction.
  bool loads_elsewhere(const StmtNode& s) const {
    const ir::Buffer* target = s.buffer.get();
    return std::any_of(stores.begin(), stores.end(), [&](const StmtNode* other) {
      if (other == &s) return false;
      if (other->buffer.get() == target) return !are_apart(*other, s) || !reduction_op(*other);
      return ir::loads_from(other->value, target);
    });
  }
  // Surely to different elements of one buffer.
  static bool are_apart(const StmtNode& a, const StmtNode& b) {
    for (size_t d = 0; d < a.indices.size(); ++d) {
      const auto apart = ir::add(ir::linearize(a.indices[d]), ir::linearize(b.indices[d]), -1);
      if (apart && apart->is_constant() && apart->constant != 0) return true;
    }
    return false;
  }
};

}  // namespace

bool is_filter(const StmtNode& s) {
  if (s.kind != StmtKind::kIf || s.body.size() < 2) return false;
  const auto is_store = [](const ir::Stmt& child) { return child->kind == StmtKind::kStore; };
  if (!std::all_of(s.body.begin(), s.body.end(), is_store)) return false;
  const StmtNode& counting = *s.body.back();
  const Expr count = ir::load(counting.buffer, counting.indices);
  if (counting.buffer->scope == ir::Scope::kGlobal || !counting.indices.empty() ||
      counting.buffer->dtype != DType::kI64 || !ir::equal(counting.value, count + 1)) {
    return false;
  }
  std::vector<const ir::Buffer*> written = {counting.buffer.get()};
  std::vector<Expr> read = {s.condition};
  for (size_t i = 0; i + 1 < s.body.size(); ++i) {
    const StmtNode& store = *s.body[i];
    if (store.buffer->scope == ir::Scope::kGlobal || dtype_bytes(store.buffer->dtype) < 4 ||
        store.indices.size() != 1 || !ir::equal(store.indices[0], count) ||
        std::count(written.begin(), written.end(), store.buffer.get()) > 0) {
      return false;
    }
    written.push_back(store.buffer.get());
    read.push_back(store.value);
  }
  return std::none_of(read.begin(), read.end(), [&](const Expr& e) {
    return std::any_of(written.begin(), written.end(),
                       [&](const ir::Buffer* buffer) { return ir::loads_from(e, buffer); });
  });
}

const StmtNode* invariant_reduction(const StmtNode& loop) {
  std::vector<const ir::Var*> vars;
  std::vector<Expr> read;  // by bounds and conditions
  const StmtNode* s = &loop;
  while (s->kind != StmtKind::kStore) {
    const bool scalar_loop = s->kind == StmtKind::kFor && s->for_kind != ir::ForKind::kVectorized;
    if ((!scalar_loop && s->kind != StmtKind::kIf) || s->body.size() != 1) return nullptr;
    if (scalar_loop) vars.push_back(s->var.get());
    for (const Expr& e : {s->min, s->extent, s->condition}) {
      if (e) read.push_back(e);
    }
    s = s->body[0].get();
  }
  if (!reduction_op(*s)) return nullptr;
  for (const Expr& e : read) {
    if (ir::loads_from(e, s->buffer.get())) return nullptr;
  }
  for (const Expr& i : s->indices) {
    bool changes = false;
    ir::visit(i, [&](const Expr& node) { changes |= node->op == Op::kLoad; });
    for (const ir::Var* var : vars) changes |= ir::uses(i, var);
    if (changes) return nullptr;
  }
  return s;
}

namespace {

bool is_function(const Expr& e) {
  const Op op = e->op;
  return is_float(e->type) &&
         (op == Op::kDiv || op == Op::kSqrt || op == Op::kExp || op == Op::kLog ||
          op == Op::kTanh || op == Op::kErf || op == Op::kSigmoid || op == Op::kPow);
}

// The largest parts of `e` that `invariant` holds for and that have a function inside.
template <typename Invariant>
void collect_functions(const Expr& e, const Invariant& invariant, std::vector<Expr>& found) {
  if (e->op == Op::kSelect) return;
  bool costly = false;
  ir::visit(e, [&](const Expr& node) { costly |= is_function(node); });
  if (!costly) return;
  if (is_float(e->type) && invariant(e)) return found.push_back(e);
  for (const Expr& a : e->args) collect_functions(a, invariant, found);
}

}  // namespace

std::vector<Expr> invariant_functions(const StmtNode& loop) {
  std::vector<Expr> found;
  for (const ir::Stmt& s : loop.body) {
    if (s->kind != StmtKind::kStore) return {};
  }
  const auto invariant = [&](const Expr& e) {
    bool same = !ir::uses(e, loop.var.get());
    for (const ir::Stmt& s : loop.body) same = same && !ir::loads_from(e, s->buffer.get());
    ir::visit(e, [&](const Expr& node) { same = same && node->op != Op::kSelect; });
    return same;
  };
  for (const ir::Stmt& s : loop.body) collect_functions(s->value, invariant, found);
  return found;
}

LaneUse find_lane_use(const StmtNode& loop) {
  LaneVisitor visitor{loop.var.get(), {}, {}, {}, {}};
  LaneUse& use = visitor.use;
  use.facts.element_bytes = 1;
  if (loop.body.size() == 1 && is_filter(*loop.body[0])) {
    visitor.scan_filter(*loop.body[0]);
    return use;
  }
  if (std::optional<ir::Scan> scan = ir::find_scan(loop)) {
    visitor.note_stores(loop);
    use.facts.vectorizable = use.facts.scans = true;
    use.scan = std::move(*scan);
    return use;
  }
  use.facts.vectorizable = visitor.scan_all(loop.body, true);
  use.facts.reduces = !use.partials.empty();
  // A later load of something that an earlier store leaves in one element for all lanes.
  for (const ir::Buffer* buffer : visitor.lane_free) {
    for (const StmtNode* store : visitor.stores) {
      const bool own = store->buffer.get() == buffer && reduction_op(*store).has_value();
      if (!own && ir::loads_from(store->value, buffer)) use.facts.vectorizable = false;
      for (const Expr& i : store->indices) {
        if (ir::loads_from(i, buffer)) use.facts.vectorizable = false;
      }
    }
  }
  return use;
}

}  // namespace hone::backend::cpu
