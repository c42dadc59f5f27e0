#include "hone/ir/passes/hoist_places.h"

#include <algorithm>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"
#include "hone/ir/passes/tile_loops.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Bytes of the longest vectorized loop: eight vectors of AVX2, all of which are straight code. A
// longer row is a loop over such blocks, which may end where the sizes of a run do.
constexpr int64_t kBlockBytes = 256;

// Serial loops of which each has the next one as its body, the outermost first, and the store in
// the last one.
struct Nest {
  std::vector<const StmtNode*> loops;
  Stmt store;  // null: not such a nest
};

bool is_plain(const StmtNode& s) {
  return s.kind == StmtKind::kFor && s.for_kind == ForKind::kSerial && !s.peel &&
         s.body.size() == 1 && counts_from_zero(s) && s.extent->int_value > 0;
}

Nest nest_of(const StmtNode& outermost) {
  Nest nest;
  const StmtNode* s = &outermost;
  while (is_plain(*s)) {
    nest.loops.push_back(s);
    if (s->body[0]->kind == StmtKind::kStore && s->body[0]->buffer->scope != Scope::kRegister)
      nest.store = s->body[0];
    s = s->body[0].get();
  }
  return nest;
}

bool uses_any(const std::vector<Expr>& indices, const Var* var) {
  return std::any_of(indices.begin(), indices.end(), [&](const Expr& e) { return uses(e, var); });
}

bool is_contiguous(const std::vector<Expr>& indices, const VarPtr& var) {
  if (indices.empty()) return false;
  const Linear last = linearize(indices.back());
  return last.coefficient(var) == 1 && !depends(without(last, variable(var)), var) &&
         !uses_any({indices.begin(), indices.end() - 1}, var.get());
}

// Returns whether an operand is evaluated only if the one before it says so.
bool is_chosen(const ExprNode& e, size_t operand) {
  return operand > 0 && (e.op == Op::kSelect || e.op == Op::kAnd || e.op == Op::kOr);
}

// Collects the places that a row reads, and finds whether it can be moved in vectors.
class Row {
 public:
  Row(const StmtNode& loop, const StmtNode& store)
      : var_(loop.var), store_(store), in_vectors_(is_contiguous(store.indices, loop.var)) {
    note_type(store.buffer->dtype);
    visit(store.value, false);
    for (const Expr& index : store.indices) visit_index(index, false);
  }

  [[nodiscard]] const std::vector<Expr>& places() const { return places_; }
  [[nodiscard]] bool in_vectors() const { return in_vectors_ && !places_.empty(); }
  [[nodiscard]] int64_t widest() const { return widest_; }

 private:
  // `perhaps`: the expression is evaluated under a condition.
  void visit(const Expr& e, bool perhaps) {
    note_type(e->type);
    if (e->op == Op::kLoad) return visit_load(*e, perhaps);
    for (size_t i = 0; i < e->args.size(); ++i) visit(e->args[i], perhaps || is_chosen(*e, i));
  }

  void visit_load(const ExprNode& e, bool perhaps) {
    note_type(e.buffer->dtype);
    in_vectors_ &= !uses_any(e.args, var_.get()) || is_contiguous(e.args, var_);
    const bool is_own =
        std::equal(e.args.begin(), e.args.end(), store_.indices.begin(), store_.indices.end(),
                   [](const Expr& a, const Expr& b) { return equal(a, b); });
    in_vectors_ &= e.buffer != store_.buffer || is_own;
    for (const Expr& index : e.args) visit_index(index, perhaps);
  }

  void visit_index(const Expr& index, bool perhaps) {
    if (!has_load(index)) return;
    if (uses(index, var_.get())) {
      in_vectors_ &= index->op != Op::kLoad;
      for (size_t i = 0; i < index->args.size(); ++i)
        visit_index(index->args[i], perhaps || is_chosen(*index, i));
      return;
    }
    if (perhaps || loads_from(index, store_.buffer.get())) return void(in_vectors_ = false);
    const bool is_known = std::any_of(places_.begin(), places_.end(),
                                      [&](const Expr& place) { return equal(place, index); });
    if (!is_known) places_.push_back(index);
  }

  void note_type(DType type) { widest_ = std::max<int64_t>(widest_, dtype_bytes(type)); }

  const VarPtr& var_;
  const StmtNode& store_;
  std::vector<Expr> places_;
  int64_t widest_ = 1;
  bool in_vectors_;
};

Stmt vector_loop(const StmtNode& loop, const Stmt& store, const Expr& first, int64_t count) {
  const VarPtr lane = make_var(loop.var->name + ".1");
  return make_for(lane, constant(0), constant(count), ForKind::kVectorized,
                  {substitute(store, {{loop.var, first + variable(lane)}})});
}

Stmt in_vectors(const StmtNode& loop, const Stmt& store, int64_t block) {
  const int64_t count = loop.extent->int_value, whole = count / block * block;
  std::vector<Stmt> parts;
  if (whole > 0) {
    const VarPtr number = make_var(loop.var->name + ".0");
    parts.push_back(make_for(number, constant(0), constant(count / block), ForKind::kSerial,
                             {vector_loop(loop, store, variable(number) * block, block)}));
  }
  if (whole < count) parts.push_back(vector_loop(loop, store, constant(whole), count - whole));
  return make_block(std::move(parts));
}

// Returns how many loops are around the one before which a place is computed.
size_t depth_of(const Expr& place, const Nest& nest) {
  size_t depth = nest.loops.size();
  while (depth > 0 && !uses(place, nest.loops[depth - 1]->var.get())) --depth;
  return depth;
}

Stmt hoisted(const Nest& nest, const Row& row) {
  std::vector<BufferPtr> buffers;
  for (const Expr& place : row.places())
    buffers.push_back(make_buffer("place", place->type, {}, Scope::kStack));
  const Stmt store = rewrite_exprs(nest.store, [&](const Expr& e) -> Expr {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (equal(e, row.places()[i])) return load(buffers[i], {});
    }
    return nullptr;
  });
  const StmtNode& last = *nest.loops.back();
  Stmt made = row.in_vectors() ? in_vectors(last, store, kBlockBytes / row.widest())
                               : with_body(last, {store});
  for (size_t depth = nest.loops.size(); depth-- > 0;) {
    if (depth + 1 < nest.loops.size()) made = with_body(*nest.loops[depth], {made});
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (depth_of(row.places()[i], nest) == depth)
        made = make_alloc(buffers[i], {make_store(buffers[i], {}, row.places()[i]), made});
    }
  }
  return made;
}

Stmt run(const Stmt& s) {
  const Nest nest = nest_of(*s);
  if (nest.store) {
    const Row row(*nest.loops.back(), *nest.store);
    if (!row.places().empty()) return hoisted(nest, row);
  }
  return map_body(s, run);
}

}  // namespace

bool is_row_at_place(const StmtNode& loop) {
  const Nest nest = nest_of(loop);
  return nest.loops.size() == 1 && nest.store && Row(loop, *nest.store).in_vectors();
}

Program hoist_places(Program program) { return map_run_phases(std::move(program), run); }

}  // namespace hone::ir
