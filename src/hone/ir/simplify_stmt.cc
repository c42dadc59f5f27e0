#include <algorithm>

#include "hone/ir/loads.h"
#include "hone/ir/simplifier.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

// Without the stores to a buffer and prefetches of it.
Stmt drop_stores(const Stmt& s, const BufferPtr& buffer) {
  if ((s->kind == StmtKind::kStore || s->kind == StmtKind::kPrefetch) && s->buffer == buffer)
    return make_block({});
  const Stmt result = map_body(s, [&](const Stmt& child) { return drop_stores(child, buffer); });
  return result->body.empty() && result != s ? make_block({}) : result;
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
        std::vector<Expr> indices;
        for (const Expr& e : s->indices) indices.push_back(exprs_.index(s->buffer, e));
        const Expr value = exprs_.simplify(s->value);
        const Expr own = load(s->buffer, indices);
        if (equal(own, value)) return make_block({});  // x = x
        // What is always zero is no copy.
        const bool copies = value->op == Op::kLoad || value->op == Op::kSelect;
        return s->async && copies ? make_async_store(s->buffer, std::move(indices), value)
                                  : make_store(s->buffer, std::move(indices), value);
      }
      case StmtKind::kPrefetch: return make_prefetch(s->buffer, all(s->indices), s->cache);
      case StmtKind::kExtern: return s;
      case StmtKind::kRoles:
        return map_body(s, [this](const Stmt& role) { return simplify(role); });
      default: {
        std::vector<Box> boxes = s->boxes;
        for (Box& box : boxes) box.indices = all(box.indices);
        return with_exprs(*s, nullptr, nullptr, nullptr, all(s->indices),
                          s->value ? exprs_.simplify(s->value) : nullptr, {}, std::move(boxes));
      }
    }
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
    // What a block computes needs a loop over threads, even if it has one iteration.
    if (is_const_int(extent, 1) && !is_thread_loop(s.for_kind)) {
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
    if (s.buffer->scope == Scope::kSignal) return with_body(s, std::move(body));
    const bool is_read = std::any_of(
        body.begin(), body.end(), [&](const Stmt& child) { return reads(*child, s.buffer.get()); });
    if (!is_read) {
      for (Stmt& child : body) child = drop_stores(child, s.buffer);
      return make_block(std::move(body));
    }
    return with_body(s, std::move(body));
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
  return map_all_phases(std::move(program),
                        [&](const Stmt& s) { return simplify(s, Ranges(), options); });
}

}  // namespace hone::ir
