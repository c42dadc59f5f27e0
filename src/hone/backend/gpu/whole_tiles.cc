#include "hone/backend/gpu/whole_tiles.h"

#include <optional>

#include "hone/backend/gpu/matrix_layout.h"
#include "hone/base/round_up.h"
#include "hone/ir/linear.h"

namespace hone::backend::gpu {
namespace {

using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

constexpr int64_t kTile = kTileRows;
static_assert(kTileRows == kTileColumns);

// Returns the number of the index that says the row (column), or nothing if there is none.
std::optional<size_t> index_of(const ir::BufferPtr& buffer, bool columns, size_t rank,
                               const Fragments& fragments) {
  const auto f = fragments.find(buffer.get());
  if (f == fragments.end() || !(columns ? f->second.matrix : f->second.rows)) return std::nullopt;
  return columns ? rank - 1 : f->second.row(rank);
}

// Returns the place inside its tile of the row (column) that all accesses of fragments have, if
// they have one and no loop runs over rows (columns).
std::optional<int64_t> place_of(const Stmt& nest, bool columns, const Fragments& fragments) {
  std::optional<int64_t> place;
  bool same = !ir::any_stmt(*nest, [&](const StmtNode& s) {
    return s.kind == StmtKind::kFor && runs_over(s, columns, fragments);
  });
  for_each_access(*nest, [&](const ir::BufferPtr& buffer, const std::vector<Expr>& indices) {
    const auto d = index_of(buffer, columns, indices.size(), fragments);
    if (!d) return;
    const ir::Linear form = ir::linearize(indices[*d]);
    const int64_t at = ((form.constant % kTile) + kTile) % kTile;
    same = same && place.value_or(at) == at;
    for (const auto& [term, coefficient] : form.terms) same = same && coefficient % kTile == 0;
    place = at;
  });
  return same ? place : std::nullopt;
}

// Adds something to the index of the row (column) in all accesses of fragments.
Stmt moved(const Stmt& s, bool columns, const Expr& by, const Fragments& fragments) {
  const auto indices = [&](const ir::BufferPtr& buffer, std::vector<Expr> list) {
    if (const auto d = index_of(buffer, columns, list.size(), fragments)) list[*d] = list[*d] + by;
    return list;
  };
  const auto load = [&](const Expr& e) {
    return e->op == Op::kLoad && index_of(e->buffer, columns, e->args.size(), fragments)
               ? ir::load(e->buffer, indices(e->buffer, e->args))
               : nullptr;
  };
  return ir::rewrite_stmts(ir::rewrite_exprs(s, load), [&](const Stmt& made) {
    const bool store = made->kind == StmtKind::kStore &&
                       index_of(made->buffer, columns, made->indices.size(), fragments);
    return store ? ir::make_store(made->buffer, indices(made->buffer, made->indices), made->value)
                 : made;
  });
}

}  // namespace

bool runs_over(const StmtNode& loop, bool columns, const Fragments& fragments) {
  bool found = false;
  for_each_access(loop, [&](const ir::BufferPtr& buffer, const std::vector<Expr>& indices) {
    if (const auto d = index_of(buffer, columns, indices.size(), fragments); d)
      found = found || ir::linearize(indices[*d]).coefficient(loop.var) == 1;
  });
  return found;
}

Stmt with_whole_tiles(const Stmt& nest, const Fragments& fragments) {
  Stmt made = ir::rewrite_stmts(nest, [&](const Stmt& s) {
    const bool known = s->kind == StmtKind::kFor && ir::is_const_int(s->min, 0) &&
                       ir::is_const_int(s->extent) && s->extent->int_value % kTile != 0;
    if (!known || runs_over(*s, false, fragments) == runs_over(*s, true, fragments)) return s;
    const Stmt inside = ir::make_if(ir::less(ir::variable(s->var), s->extent), s->body);
    return ir::make_for(s->var, s->min, ir::constant(round_up(s->extent->int_value, kTile)),
                        s->for_kind, {inside});
  });
  for (const bool columns : {false, true}) {
    const std::optional<int64_t> place = place_of(made, columns, fragments);
    if (!place) continue;
    const ir::VarPtr var = ir::make_var(columns ? "column" : "row");
    const Expr at = ir::variable(var);
    const Stmt inside = ir::make_if(ir::make(Op::kEq, {at, ir::constant(*place)}),
                                    {moved(made, columns, at - *place, fragments)});
    made = ir::make_for(var, ir::constant(0), ir::constant(kTile), ir::ForKind::kSerial, {inside});
  }
  return made;
}

}  // namespace hone::backend::gpu
