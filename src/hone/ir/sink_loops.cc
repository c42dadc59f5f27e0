#include "hone/ir/sink_loops.h"

#include <algorithm>

#include "hone/ir/linear.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

class Sink {
 public:
  Sink(const std::vector<SunkLoop>& loops,
       const std::function<std::vector<Stmt>(std::vector<Stmt>)>& around)
      : loops_(loops), around_(around) {}

  std::vector<Stmt> run(const std::vector<Stmt>& body) {
    std::vector<Stmt> all, together;
    split(body, all, together);
    flush(all, together);
    return all;
  }

 private:
  void flush(std::vector<Stmt>& all, std::vector<Stmt>& together) const {
    if (together.empty()) return;
    for (Stmt& s : around_(std::move(together))) all.push_back(std::move(s));
    together.clear();
  }

  void split(const std::vector<Stmt>& body, std::vector<Stmt>& all, std::vector<Stmt>& together) {
    for (const Stmt& s : body) {
      if (s->kind == StmtKind::kBlock) {
        split(s->body, all, together);
      } else if (s->kind == StmtKind::kAlloc) {
        flush(all, together);
        const BufferPtr wide = widen(s->buffer);
        all.push_back(make_alloc(wide, run(s->body)));
      } else if (s->kind == StmtKind::kFor && is_same(s->min) && is_same(s->extent)) {
        flush(all, together);
        all.push_back(with_body(*s, run(s->body)));
      } else {
        together.push_back(place(s));
      }
    }
  }

  // For all points, whatever is in memory.
  bool is_same(const Expr& e) const {
    return !has_load(e) && std::none_of(loops_.begin(), loops_.end(), [&](const SunkLoop& loop) {
      return uses(e, loop.var.get());
    });
  }

  BufferPtr widen(const BufferPtr& buffer) {
    auto wide = std::make_shared<Buffer>(*buffer);
    for (const SunkLoop& loop : loops_) wide->shape.push_back(loop.extent);
    wide_.push_back({buffer, wide});
    return wide;
  }
  const BufferPtr* find(const BufferPtr& buffer) const {
    for (const auto& [from, to] : wide_) {
      if (from == buffer) return &to;
    }
    return nullptr;
  }
  std::vector<Expr> with_point(std::vector<Expr> indices) const {
    for (const SunkLoop& loop : loops_) indices.push_back(variable(loop.var));
    return indices;
  }

  Stmt place(const Stmt& s) const {
    const Stmt loaded = rewrite_exprs(s, [&](const Expr& e) -> Expr {
      const BufferPtr* wide = e->op == Op::kLoad ? find(e->buffer) : nullptr;
      return wide != nullptr ? load(*wide, with_point(e->args)) : nullptr;
    });
    return rewrite_stmts(loaded, [&](const Stmt& store) {
      const BufferPtr* wide = store->kind == StmtKind::kStore ? find(store->buffer) : nullptr;
      return wide != nullptr ? make_store(*wide, with_point(store->indices), store->value) : store;
    });
  }

  const std::vector<SunkLoop>& loops_;
  const std::function<std::vector<Stmt>(std::vector<Stmt>)>& around_;
  std::vector<std::pair<BufferPtr, BufferPtr>> wide_;  // as allocated, with the loops' dimensions
};

}  // namespace

std::vector<Stmt> sink_loops(const std::vector<Stmt>& body, const std::vector<SunkLoop>& loops,
                             const std::function<std::vector<Stmt>(std::vector<Stmt>)>& around) {
  return Sink(loops, around).run(body);
}

}  // namespace hone::ir
