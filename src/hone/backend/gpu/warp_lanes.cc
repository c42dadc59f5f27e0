#include "hone/backend/gpu/warp_lanes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "hone/backend/gpu/lane_pairs.h"
#include "hone/backend/gpu/matrix_layout.h"
#include "hone/backend/gpu/warp_fragments.h"
#include "hone/backend/gpu/whole_tiles.h"
#include "hone/ir/gpu/matrix_box.h"
#include "hone/ir/gpu/thread_nest.h"
#include "hone/ir/linear.h"
#include "hone/ir/printer.h"
#include "hone/ir/visit.h"

namespace hone::backend::gpu {
namespace {

using ir::Buffer;
using ir::BufferPtr;
using ir::Expr;
using ir::ForKind;
using ir::Op;
using ir::Scope;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

bool is_loop(const StmtNode& s, ForKind kind) {
  return s.kind == StmtKind::kFor && s.for_kind == kind;
}

// Returns whether lanes cannot do a statement each by itself.
bool is_together(const StmtNode& s) {
  return ir::any_stmt(s, [](const StmtNode& n) {
    return n.kind == StmtKind::kMatrix || n.kind == StmtKind::kBarrier ||
           n.kind == StmtKind::kCommit || n.kind == StmtKind::kWait ||
           (n.kind == StmtKind::kFor && ir::is_thread_loop(n.for_kind));
  });
}

bool in_memory(const Buffer& b) { return b.scope == Scope::kShared || b.scope == Scope::kGlobal; }
bool stores_memory(const StmtNode& s) {
  return ir::any_stmt(
      s, [](const StmtNode& n) { return n.kind == StmtKind::kStore && in_memory(*n.buffer); });
}

bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return ir::equal(x, y); });
}

int64_t count_accesses(const StmtNode& s, const Buffer* buffer) {
  int64_t count = 0;
  for_each_access(
      s, [&](const BufferPtr& b, const std::vector<Expr>&) { count += b.get() == buffer; });
  return count;
}

// Returns whether one loop nest of a warp stores memory that another of its iterations may access.
bool has_hazard(const StmtNode& nest) {
  bool hazard = false;
  std::map<const Buffer*, const StmtNode*> stores;  // looked up only
  ir::for_each_stmt(nest, [&](const StmtNode& s) {
    if (s.kind != StmtKind::kStore || !in_memory(*s.buffer)) return;
    if (!stores.emplace(s.buffer.get(), &s).second) hazard = true;
  });
  for_each_access(nest, [&](const BufferPtr& buffer, const std::vector<Expr>& indices) {
    const auto store = stores.find(buffer.get());
    if (store != stores.end() && !same_indices(indices, store->second->indices)) hazard = true;
  });
  return hazard;
}

// R[..] = R[..] op x: what is reduced, and how.
struct Reduction {
  const StmtNode* store;
  Op op;
  Expr operand;
  BufferPtr part = nullptr;  // what one lane has reduced
};
std::optional<Reduction> reduction_of(const StmtNode& s) {
  const Op op = s.value->op;
  if ((op != Op::kAdd && op != Op::kMax && op != Op::kMin) || s.value->type != DType::kF32)
    return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const Expr& own = s.value->args[i];
    if (own->op == Op::kLoad && own->buffer == s.buffer && same_indices(own->args, s.indices))
      return Reduction{&s, op, s.value->args[1 - i]};
  }
  return std::nullopt;
}
const char* quad_function(Op op) {
  return op == Op::kAdd ? "quad_sum" : op == Op::kMax ? "quad_max" : "quad_min";
}
const char* warp_function(Op op) {
  return op == Op::kAdd ? "warp_sum" : op == Op::kMax ? "warp_max" : "warp_min";
}
double neutral(Op op) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return op == Op::kAdd ? 0 : op == Op::kMax ? -kInfinity : kInfinity;
}

class Spreader {
 public:
  Result<Stmt> run(const Stmt& phase) && {
    fragments_ = find_fragments(*phase);
    ir::for_each_stmt(*phase, [&](const StmtNode& s) {
      const Fragment* f = s.kind == StmtKind::kAlloc ? fragment(s.buffer) : nullptr;
      if (f != nullptr && !f->spread)
        fail("{}, whose rows or columns in a warp are no multiple of 8", s.buffer->name);
    });
    if (!status_.ok()) return status_;
    Stmt made = of_block(phase);
    if (!status_.ok()) return status_;
    return made;
  }

 private:
  // The loop over rows, or over columns, that a statement is in: its variable, and that of the loop
  // over what a lane has of them.
  struct Axis {
    ir::VarPtr var, own;
  };

  template <typename... A>
  void fail(fmt::format_string<A...> format, A&&... args) {
    if (status_.ok())
      status_ = error(Code::kUnsupported, "there is no code for {}",
                      fmt::format(format, std::forward<A>(args)...));
  }
  const Fragment* fragment(const BufferPtr& buffer) const {
    const auto it = fragments_.find(buffer.get());
    return it == fragments_.end() ? nullptr : &it->second;
  }

  Stmt of_block(const Stmt& s) {
    if (s->kind == StmtKind::kMatrix) {
      fail("matrix instructions of several warps yet");
      return s;
    }
    if (is_loop(*s, ForKind::kWarp)) return ir::with_body(*s, of_warp(s->body));
    const Stmt made = ir::map_body(s, [&](const Stmt& child) { return of_block(child); });
    const Fragment* f = s->kind == StmtKind::kAlloc ? fragment(s->buffer) : nullptr;
    return f != nullptr ? ir::make_alloc(f->spread, made->body) : made;
  }

  // Statements of a warp: lanes do by themselves what they can.
  std::vector<Stmt> of_warp(const std::vector<Stmt>& body) {
    std::vector<Stmt> out, nests;
    ir::VarPtr lane = ir::make_var("lane");
    const auto flush = [&] {
      if (nests.empty()) return;
      out.push_back(ir::make_for(lane, ir::constant(0), ir::constant(ir::kWarpThreads),
                                 ForKind::kLane, std::move(nests)));
      nests.clear();
      lane = ir::make_var("lane");
    };
    const auto wait = [&] {
      flush();
      if (out.empty() || out.back()->kind != StmtKind::kBarrier)
        out.push_back(ir::make_barrier(true));
    };
    for (const Stmt& s : body) {
      if (is_together(*s)) {
        flush();
        out.push_back(together(s));
        continue;
      }
      const bool stores = stores_memory(*s);
      if (stores) wait();
      if (has_hazard(*s)) fail("loops in which a warp stores memory and accesses it elsewhere");
      lane_ = ir::variable(lane);
      const Stmt whole = with_whole_tiles(s, fragments_);
      nests.push_back(nest(whole));
      if (stores) wait();
    }
    flush();
    return out;
  }

  Stmt together(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kMatrix: return matrix(*s);
      case StmtKind::kBarrier:
      case StmtKind::kCommit:
      case StmtKind::kWait: return s;
      default: break;
    }
    if (is_loop(*s, ForKind::kLane)) return with_copies(s);
    const bool differs = ir::any_expr(*s, [&](const Expr& e) {
      bool found = false;
      ir::visit(e, [&](const Expr& n) {
        found = found || (n->op == Op::kLoad && n->buffer->scope == Scope::kFragment);
      });
      return found;
    });
    if (differs) fail("what a warp does together as elements of a fragment decide");
    if (s->kind == StmtKind::kBlock) return ir::make_block(of_warp(s->body));
    if (s->kind == StmtKind::kFor && s->for_kind != ForKind::kWarp)
      return ir::make_for(s->var, s->min, s->extent, plain_kind(*s), of_warp(s->body));
    return ir::with_body(*s, of_warp(s->body));
  }

  // A loop over lanes, with the lane's own copies of what is one element of the warp.
  Stmt with_copies(const Stmt& loop) {
    return ir::rewrite_exprs(loop, [&](const Expr& e) -> Expr {
      const Fragment* f = e->op == Op::kLoad ? fragment(e->buffer) : nullptr;
      if (f == nullptr || f->lanes) return nullptr;
      if (ir::any_stmt(*loop, [&](const StmtNode& s) {
            return &s != loop.get() && is_loop(s, ForKind::kLane);
          }))
        fail("elements of a warp in several loops over its lanes");
      std::vector<Expr> indices = e->args;
      indices.insert(indices.begin() + static_cast<std::ptrdiff_t>(f->owned),
                     ir::variable(loop->var));
      return ir::load(f->spread, std::move(indices));
    });
  }

  // ---- matrix statements ----
  Stmt matrix(const StmtNode& s) {
    const ir::MatrixBox d = *ir::matrix_of(s.boxes[0]), a = *ir::matrix_of(s.boxes[1]);
    const DType type = s.boxes[1].buffer->dtype;
    const bool known = (type == DType::kF32 || type == DType::kF16 || type == DType::kBF16) &&
                       s.boxes[0].buffer->dtype == DType::kF32;
    if (s.async) fail("matrix instructions that are waited for yet");
    if (!known)
      fail("matrix instructions of {} += {} * {}", dtype_name(s.boxes[0].buffer->dtype),
           dtype_name(type), dtype_name(type));
    if (d.rows % kMatrixRows != 0 || d.columns % kMatrixColumns != 0 ||
        a.columns % matrix_depth(type) != 0)
      fail("a matrix statement of {} x {} x {}, which is no multiple of {} x {} x {}", d.rows,
           d.columns, a.columns, kMatrixRows, kMatrixColumns, matrix_depth(type));
    if (fragment(s.boxes[0].buffer) == nullptr)
      fail("a matrix instruction whose result is not in a fragment of the warp");
    if (s.boxes[2].buffer->scope == Scope::kFragment)
      fail("a matrix instruction whose second operand is in a fragment");
    if (!status_.ok()) return ir::make_block({});
    return ir::make_matrix(spread_box(s.boxes[0]), spread_box(s.boxes[1]), s.boxes[2]);
  }

  // A box of a fragment as one of its spread form, of lane 0. Others stay.
  ir::Box spread_box(const ir::Box& box) {
    const Fragment* f = fragment(box.buffer);
    if (f == nullptr) return box;
    const ir::MatrixBox m = *ir::matrix_of(box);
    const int rank = static_cast<int>(box.extents.size());
    if (!f->matrix || m.row != rank - 2 || m.column != rank - 1) {
      fail("a box of {} that is not one of its last two dimensions", box.buffer->name);
      return box;
    }
    ir::Box out = box;
    out.buffer = f->spread;
    const auto r = static_cast<size_t>(m.row), c = static_cast<size_t>(m.column);
    out.indices[r] = divided(box.indices[r], kTileRows, kTileRows, box.buffer->name);
    out.indices[c] =
        divided(box.indices[c], kTileColumns, kTileColumns / kOwnColumns, box.buffer->name);
    out.extents[r] /= kTileRows;
    out.extents[c] /= kTileColumns / kOwnColumns;
    const auto lanes = static_cast<std::ptrdiff_t>(f->owned);
    out.indices.insert(out.indices.begin() + lanes, ir::constant(0));
    out.extents.insert(out.extents.begin() + lanes, 1);
    return out;
  }

  // Returns e / divisor of a multiple of `tile`.
  Expr divided(const Expr& e, int64_t tile, int64_t divisor, const std::string& name) {
    ir::Linear form = ir::linearize(e);
    bool whole = form.constant % tile == 0;
    form.constant /= divisor;
    for (auto& [term, coefficient] : form.terms) {
      whole = whole && coefficient % tile == 0;
      coefficient /= divisor;
    }
    if (!whole) fail("the index {} of {}, which is no multiple of {}", ir::print(e), name, tile);
    return ir::to_expr(form);
  }

  // ---- what lanes do by themselves ----
  std::vector<Stmt> nests(const std::vector<Stmt>& body) {
    std::vector<Stmt> out;
    for (const Stmt& s : body) out.push_back(nest(s));
    return out;
  }
  Stmt nest(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kBlock: return ir::make_block(nests(s->body));
      case StmtKind::kPrefetch: return ir::make_block({});
      case StmtKind::kIf: return ir::make_if(expr(s->condition), nests(s->body));
      case StmtKind::kFor: return loop(*s);
      case StmtKind::kStore: return store(*s);
      default: fail("a statement of a warp"); return s;
    }
  }

  // Returns the kind of a loop that each lane runs: one that chooses registers is unrolled.
  ForKind plain_kind(const StmtNode& loop) const {
    bool chooses = loop.for_kind == ForKind::kVectorized;
    const auto access = [&](const BufferPtr& buffer, const std::vector<Expr>& indices) {
      if (fragment(buffer) == nullptr) return;
      for (const Expr& i : indices) chooses = chooses || ir::uses(i, loop.var.get());
    };
    for_each_access(loop, access);
    return chooses && ir::is_const_int(loop.extent) ? ForKind::kUnrolled : loop.for_kind;
  }

  // Returns whether a loop runs over the elements of the lanes of a warp.
  bool runs_over_lanes(const StmtNode& loop) const {
    bool found = false;
    for_each_access(loop, [&](const BufferPtr& buffer, const std::vector<Expr>& indices) {
      const Fragment* f = fragment(buffer);
      found = found || (f != nullptr && f->lanes && ir::uses(indices[f->owned], loop.var.get()));
    });
    return found;
  }

  // R[w] = R[w] op x(k), for all lanes k: each lane makes its own x, and they exchange these.
  Stmt exchange(const StmtNode& loop) {
    const bool whole = ir::is_const_int(loop.min, 0) &&
                       ir::is_const_int(loop.extent, ir::kWarpThreads) && loop.body.size() == 1 &&
                       loop.body[0]->kind == StmtKind::kStore && !rows_.var && !columns_.var;
    const auto r = whole ? reduction_of(*loop.body[0]) : std::nullopt;
    const Fragment* f = r ? fragment(r->store->buffer) : nullptr;
    if (f == nullptr || f->rows || f->lanes ||
        count_accesses(*r->store, r->store->buffer.get()) != 2) {
      fail("the loop {} over what lanes have, which is no sum, maximum or minimum of a warp",
           loop.var->name);
      return ir::make_block({});
    }
    const BufferPtr part =
        ir::make_buffer(r->store->buffer->name + "_part", DType::kF32, {}, Scope::kRegister);
    const std::vector<Expr> indices = own_indices(*r->store->buffer, *f, r->store->indices);
    const Expr own = expr(ir::substitute(r->operand, {{loop.var, lane_}}));
    return ir::make_alloc(
        part,
        {ir::make_store(part, {}, own), ir::make_extern(warp_function(r->op), {part}),
         ir::make_store(f->spread, indices,
                        ir::make(r->op, {ir::load(f->spread, indices), ir::load(part, {})}))});
  }

  Stmt loop(const StmtNode& s) {
    if (runs_over_lanes(s)) return exchange(s);
    const bool rows = runs_over(s, false, fragments_), columns = runs_over(s, true, fragments_);
    if (!rows && !columns) {
      return ir::make_for(s.var, expr(s.min), expr(s.extent), plain_kind(s), nests(s.body));
    }
    Axis& axis = rows ? rows_ : columns_;
    const bool whole = ir::is_const_int(s.min, 0) && ir::is_const_int(s.extent) &&
                       s.extent->int_value % kTileRows == 0;
    if ((rows && columns) || axis.var || !whole) {
      fail("the loop {} over elements of a warp, which is none over whole tiles of rows or columns",
           s.var->name);
      return ir::make_block({});
    }
    axis = {s.var, ir::make_var("own_" + s.var->name)};
    const int64_t own = s.extent->int_value / kTileRows * (rows ? 1 : kOwnColumns);
    const size_t outer = reductions_.size();
    if (columns) find_reductions(s);
    std::vector<Stmt> body = nests(s.body);
    Stmt made = columns && stores_memory(s)
                    ? loop_in_pairs(axis.own, own, body, lane_)
                    : ir::make_for(axis.own, ir::constant(0), ir::constant(own), ForKind::kUnrolled,
                                   std::move(body));
    axis = {};
    while (reductions_.size() > outer) {
      made = combined(reductions_.back(), made);
      reductions_.pop_back();
    }
    return made;
  }

  void find_reductions(const StmtNode& loop) {
    ir::for_each_stmt(loop, [&](const StmtNode& s) {
      const Fragment* f = s.kind == StmtKind::kStore ? fragment(s.buffer) : nullptr;
      if (f == nullptr || f->matrix) return;
      std::optional<Reduction> r = reduction_of(s);
      const bool uses_inner = ir::any_stmt(loop, [&](const StmtNode& n) {
        return n.kind == StmtKind::kFor &&
               std::any_of(s.indices.begin(), s.indices.end(),
                           [&](const Expr& i) { return ir::uses(i, n.var.get()); });
      });
      if (!r || !f->rows || uses_inner || count_accesses(loop, s.buffer.get()) != 2) {
        fail("the store of {} in the loop {}, which is no sum, maximum or minimum of rows",
             s.buffer->name, loop.var->name);
        return;
      }
      r->part = ir::make_buffer(s.buffer->name + "_part", DType::kF32, {}, Scope::kRegister);
      reductions_.push_back(*r);
    });
  }

  Stmt combined(const Reduction& r, const Stmt& loop) {
    const Fragment& f = *fragment(r.store->buffer);
    const std::vector<Expr> indices = own_indices(*r.store->buffer, f, r.store->indices);
    return ir::make_alloc(
        r.part,
        {ir::make_store(r.part, {}, ir::constant_float(neutral(r.op))), loop,
         ir::make_extern(quad_function(r.op), {r.part}),
         ir::make_store(f.spread, indices,
                        ir::make(r.op, {ir::load(f.spread, indices), ir::load(r.part, {})}))});
  }

  Stmt store(const StmtNode& s) {
    if (const Fragment* f = fragment(s.buffer); f != nullptr) {
      for (const Reduction& r : reductions_) {
        if (r.store == &s)
          return ir::make_store(r.part, {},
                                ir::make(r.op, {ir::load(r.part, {}), expr(r.operand)}));
      }
      if (!f->rows && (rows_.var || columns_.var))
        fail("the store of {} in a loop over rows or columns", s.buffer->name);
      return ir::make_store(f->spread, own_indices(*s.buffer, *f, s.indices), expr(s.value));
    }
    std::vector<Expr> indices;
    for (const Expr& i : s.indices) indices.push_back(expr(i));
    const Stmt made = ir::make_store(s.buffer, std::move(indices), expr(s.value));
    if (rows_.var && columns_.var) return made;
    // Other lanes have the same element.
    const Expr first = !rows_.var && !columns_.var ? lane_
                       : rows_.var                 ? ir::floormod(lane_, 4)
                                                   : ir::floordiv(lane_, 4);
    return ir::make_if(ir::make(Op::kEq, {first, ir::constant(0)}), {made});
  }

  Expr expr(const Expr& e) {
    if (e->op == Op::kVar && rows_.var && e->var == rows_.var)
      return row_of(ir::variable(rows_.own), lane_);
    if (e->op == Op::kVar && columns_.var && e->var == columns_.var)
      return column_of(ir::variable(columns_.own), lane_);
    if (e->op == Op::kLoad) {
      const Fragment* f = fragment(e->buffer);
      if (f != nullptr) return ir::load(f->spread, own_indices(*e->buffer, *f, e->args));
    }
    if (e->args.empty()) return e;
    std::vector<Expr> args;
    for (const Expr& a : e->args) args.push_back(expr(a));
    return ir::with_args(*e, std::move(args));
  }

  std::vector<Expr> own_indices(const Buffer& buffer, const Fragment& f,
                                const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    if (f.lanes) {
      if (!ir::equal(indices[f.owned], lane_))
        fail("the element {} of {}, which another lane has", ir::print(indices[f.owned]),
             buffer.name);
      for (const Expr& index : indices) out.push_back(expr(index));
      return out;
    }
    for (size_t d = 0; d < indices.size(); ++d) {
      if (d == f.owned) out.push_back(lane_);
      const bool column = f.matrix && d + 1 == indices.size();
      const bool row = f.rows && d == f.row(indices.size());
      if (d < f.owned) {
        out.push_back(indices[d]);
      } else if (row || column) {
        out.push_back(own_index(indices[d], row ? rows_ : columns_,
                                row ? kTileRows : kTileColumns / kOwnColumns, buffer.name));
      } else {
        out.push_back(expr(indices[d]));
      }
    }
    if (indices.size() == f.owned) out.push_back(lane_);
    return out;
  }

  // The number of a row or column among those that the lane has: the loop's variable runs over
  // them, and what is added to it is a multiple of a tile.
  Expr own_index(const Expr& index, const Axis& axis, int64_t divisor, const std::string& name) {
    const ir::Linear form = ir::linearize(index);
    if (!axis.var || form.coefficient(axis.var) != 1) {
      fail("the index {} of {}, which is not that of a loop over elements of a warp",
           ir::print(index), name);
      return index;
    }
    const ir::Linear rest = ir::without(form, ir::variable(axis.var));
    const Expr base = ir::to_expr(rest);
    for (const Axis& other : {rows_, columns_}) {
      if (other.var && ir::uses(base, other.var.get()))
        fail("the index {} of {}, which is one of rows and columns", ir::print(index), name);
    }
    const Expr tiles = divided(base, kTileRows, divisor, name);
    const Expr own = ir::variable(axis.own);
    return ir::is_const_int(tiles, 0) ? own : own + tiles;
  }

  Fragments fragments_;
  Axis rows_, columns_;
  Expr lane_;
  std::vector<Reduction> reductions_;
  Status status_;
};

}  // namespace

Result<Stmt> spread_over_lanes(const Stmt& phase) { return Spreader().run(phase); }

}  // namespace hone::backend::gpu
