#include <algorithm>

#include "hone/ir/simplifier.h"

namespace hone::ir {
namespace {

// Calls f on a statement and every one below.
template <typename F>
void visit_stmts(const Stmt& s, const F& f) {
  f(*s);
  for (const Stmt& child : s->body) visit_stmts(child, f);
}

bool loads_buffer(const Expr& e, const BufferPtr& buffer) {
  if (!e) return false;
  if (e->op == Op::kLoad && e->buffer == buffer) return true;
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const Expr& a) { return loads_buffer(a, buffer); });
}

// Whether somebody reads a buffer (an extern statement may).
bool is_read(const std::vector<Stmt>& body, const BufferPtr& buffer) {
  bool read = false;
  for (const Stmt& child : body) {
    visit_stmts(child, [&](const StmtNode& s) {
      const auto reads = [&](const Expr& e) { return loads_buffer(e, buffer); };
      read |= reads(s.min) || reads(s.extent) || reads(s.condition) || reads(s.value) ||
              std::any_of(s.indices.begin(), s.indices.end(), reads) ||
              std::find(s.buffers.begin(), s.buffers.end(), buffer) != s.buffers.end();
    });
  }
  return read;
}

// Without the stores to a buffer and prefetches of it.
Stmt drop_stores(const Stmt& s, const BufferPtr& buffer) {
  if ((s->kind == StmtKind::kStore || s->kind == StmtKind::kPrefetch) && s->buffer == buffer)
    return make_block({});
  if (s->body.empty()) return s;
  std::vector<Stmt> body;
  for (const Stmt& child : s->body) body.push_back(drop_stores(child, buffer));
  Stmt result = with_body(*s, std::move(body));
  return result->body.empty() && s->kind != StmtKind::kBlock ? make_block({}) : result;
}

class StmtSimplifier {
 public:
  StmtSimplifier(Ranges& ranges, const SimplifyOptions& options)
      : exprs_(ranges, options), ranges_(ranges) {}

  Stmt simplify(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kBlock: return make_block(statements(s->body));
      case StmtKind::kFor: return loop(*s);
      case StmtKind::kIf: return guard(*s);
      case StmtKind::kAlloc: return alloc(*s);
      case StmtKind::kStore: {
        std::vector<Expr> indices = all(s->indices);
        const Expr value = exprs_.simplify(s->value);
        const Expr own = load(s->buffer, indices);
        if (equal(own, value)) return make_block({});  // x = x
        return make_store(s->buffer, std::move(indices), value);
      }
      case StmtKind::kPrefetch: return make_prefetch(s->buffer, all(s->indices), s->cache);
      case StmtKind::kExtern: return s;
    }
    HONE_ASSERT(false, "an unknown statement");
  }

 private:
  std::vector<Expr> all(const std::vector<Expr>& list) {
    std::vector<Expr> result;
    for (const Expr& e : list) result.push_back(exprs_.simplify(e));
    return result;
  }

  // Simplified, flat, neighbouring ifs with one condition joined.
  std::vector<Stmt> statements(const std::vector<Stmt>& body) {
    std::vector<Stmt> flat;
    for (const Stmt& child : body) {
      const Stmt s = simplify(child);
      for (const Stmt& part : s->kind == StmtKind::kBlock ? s->body : std::vector<Stmt>{s}) {
        const bool joins = !flat.empty() && part->kind == StmtKind::kIf &&
                           flat.back()->kind == StmtKind::kIf && !has_load(part->condition) &&
                           equal(part->condition, flat.back()->condition);
        if (joins) {
          std::vector<Stmt> joined = flat.back()->body;
          joined.insert(joined.end(), part->body.begin(), part->body.end());
          flat.back() = make_if(part->condition, std::move(joined));
        } else {
          flat.push_back(part);
        }
      }
    }
    return flat;
  }

  Stmt loop(const StmtNode& s) {
    const Expr min = exprs_.simplify(s.min);
    const Expr extent = exprs_.simplify(s.extent);
    if (ranges_.of(extent).hi <= 0) return make_block({});
    if (is_const_int(extent, 1)) {
      std::vector<Stmt> body;
      for (const Stmt& child : s.body) body.push_back(substitute(child, {{s.var, min}}));
      return make_block(statements(body));
    }
    const auto mark = ranges_.mark();
    ranges_.bind_loop(s.var, min, extent);
    std::vector<Stmt> body = statements(s.body);
    ranges_.reset(mark);
    if (body.empty()) return make_block({});
    return make_for(s.var, min, extent, s.for_kind, std::move(body), s.peel);
  }

  Stmt guard(const StmtNode& s) {
    const Expr condition = exprs_.simplify(s.condition);
    if (is_true(condition)) return make_block(statements(s.body));
    if (is_false(condition)) return make_block({});
    const auto mark = ranges_.mark();
    ranges_.assume(condition);
    std::vector<Stmt> body = statements(s.body);
    ranges_.reset(mark);
    if (body.empty()) return make_block({});
    if (body.size() == 1 && body[0]->kind == StmtKind::kIf && !has_load(body[0]->condition)) {
      return make_if(exprs_.simplify(logical_and(condition, body[0]->condition)), body[0]->body);
    }
    return make_if(condition, std::move(body));
  }

  Stmt alloc(const StmtNode& s) {
    std::vector<Stmt> body = statements(s.body);
    if (!is_read(body, s.buffer)) {
      for (Stmt& child : body) child = drop_stores(child, s.buffer);
      return make_block(std::move(body));
    }
    return make_alloc(s.buffer, std::move(body));
  }

  Simplifier exprs_;
  Ranges& ranges_;
};

}  // namespace

Stmt simplify(const Stmt& s, const Ranges& ranges, const SimplifyOptions& options) {
  Ranges own = ranges;
  return StmtSimplifier(own, options).simplify(s);
}

Program simplify(Program program, const SimplifyOptions& options) {
  for (Phase& phase : program.phases) {
    if (phase.body) phase.body = simplify(phase.body, Ranges(), options);
  }
  return program;
}

}  // namespace hone::ir
