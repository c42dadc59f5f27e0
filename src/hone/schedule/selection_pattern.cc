#include "hone/schedule/selection_pattern.h"

#include <algorithm>

#include "hone/ir/visit.h"

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;

class Finder {
 public:
  explicit Finder(const compute::Stage& stage) : stage_(stage) {
    for (const Stmt& s : stage.body) {
      ir::for_each_stmt(*s, [&](const StmtNode& alloc) {
        if (alloc.kind == StmtKind::kAlloc) own_.push_back(alloc.buffer);
      });
    }
  }

  std::optional<Selection> find() {
    if (!find_write()) return std::nullopt;
    for (const Stmt& s : stage_.body) find_key(*s, nullptr);
    if (!found_.key || (found_.extent = row_length()) < found_.count) return std::nullopt;
    return found_;
  }

 private:
  [[nodiscard]] bool is_own(const ir::BufferPtr& buffer) const {
    return std::count(own_.begin(), own_.end(), buffer) > 0;
  }
  [[nodiscard]] bool is_operand(const ir::BufferPtr& buffer) const {
    return std::count(stage_.extern_reads.begin(), stage_.extern_reads.end(), buffer) > 0;
  }
  [[nodiscard]] bool is_list(const Expr& e) const {
    return e->op == Op::kLoad && e->args.size() == 1 && is_own(e->buffer);
  }
  template <typename F>
  static bool any(const Expr& e, const F& test) {
    bool found = false;
    ir::visit(e, [&](const Expr& node) { found = found || test(node); });
    return found;
  }
  [[nodiscard]] bool reads_operand(const Expr& e) const {
    return any(e,
               [&](const Expr& node) { return node->op == Op::kLoad && is_operand(node->buffer); });
  }

  // The last statement writes the results, from a list of places.
  bool find_write() {
    Stmt last = stage_.body.back();
    while (last->kind == StmtKind::kAlloc || last->kind == StmtKind::kBlock) {
      if (last->body.empty()) return false;
      last = last->body.back();
    }
    if (last->kind != StmtKind::kFor || !ir::is_const_int(last->extent)) return false;
    found_.write = last;
    found_.count = last->extent->int_value;
    if (found_.count < 1) return false;
    for (const Stmt& s : last->body) {
      if (s->kind != StmtKind::kStore || is_own(s->buffer)) return false;
      ir::visit(s->value, [&](const Expr& e) {
        if (is_list(e) && e->args[0]->op == Op::kVar && e->args[0]->var == last->var)
          found_.places = e->buffer;
      });
    }
    return found_.places != nullptr;
  }

  // The first list that is filled from the elements of the row, by their numbers or by numbers in
  // another list, is that of keys.
  void find_key(const StmtNode& s, const StmtNode* loop) {
    if (found_.key) return;
    if (s.kind == StmtKind::kFor) loop = &s;
    if (s.kind == StmtKind::kStore && s.buffer->shape.empty() && is_own(s.buffer))
      scalar_ = {s.buffer, s.value};
    const bool is_key = s.kind == StmtKind::kStore && s.buffer->shape.size() == 1 &&
                        is_own(s.buffer) && loop != nullptr &&
                        (s.buffer->dtype == DType::kI32 || s.buffer->dtype == DType::kI64);
    if (is_key) take_key(s, *loop);
    for (const Stmt& child : s.body) find_key(*child, loop);
  }

  void take_key(const StmtNode& s, const StmtNode& loop) {
    const Expr key = ir::rewrite(s.value, [&](const Expr& e) {
      return e->op == Op::kLoad && e->buffer == scalar_.first ? scalar_.second : nullptr;
    });
    const auto is_same = [&](const Expr& e) { return e->op == Op::kLoad && e->buffer == s.buffer; };
    if (!reads_operand(key) || any(key, is_same)) return;
    found_.element = ir::make_var("element");
    const Expr number = ir::variable(found_.element);
    const bool by_list = any(key, [&](const Expr& e) { return is_list(e); });
    if (!by_list) {
      found_.key = ir::substitute(key, {{loop.var, number}});
      return;
    }
    // Numbers in a list may have fewer bits, where all that there are fit.
    found_.key = ir::rewrite(key, [&](const Expr& e) -> Expr {
      if (is_list(e)) return ir::cast(e->type, number);
      const bool is_number = e->op == Op::kCast && e->type == DType::kI64 &&
                             e->args[0]->op == Op::kCast && ir::equal(e->args[0]->args[0], number);
      return is_number ? number : nullptr;
    });
  }

  // The length of the loop that goes through the row element by element.
  [[nodiscard]] int64_t row_length() const {
    std::vector<Expr> elements;
    ir::visit(found_.key, [&](const Expr& e) {
      if (e->op == Op::kLoad && is_operand(e->buffer)) elements.push_back(e);
    });
    int64_t length = 0;
    const auto reads = [&](const StmtNode& loop, const StmtNode& inside) {
      return ir::any_expr(inside, [&](const Expr& whole) {
        return any(whole, [&](const Expr& e) {
          return e->op == Op::kLoad &&
                 ir::equal(e,
                           ir::substitute(elements[0], {{found_.element, ir::variable(loop.var)}}));
        });
      });
    };
    for (const Stmt& s : stage_.body) {
      ir::for_each_stmt(*s, [&](const StmtNode& loop) {
        if (loop.kind != StmtKind::kFor || !ir::is_const_int(loop.extent) ||
            !ir::is_const_int(loop.min, 0))
          return;
        if (ir::any_stmt(loop, [&](const StmtNode& inside) { return reads(loop, inside); }))
          length = std::max(length, loop.extent->int_value);
      });
    }
    return length;
  }

  const compute::Stage& stage_;
  std::vector<ir::BufferPtr> own_;
  std::pair<ir::BufferPtr, Expr> scalar_;  // the scalar that was stored last, and its value
  Selection found_;
};

}  // namespace

std::optional<Selection> find_selection(const compute::Stage& stage) {
  if (stage.op != "top_k" || stage.body.empty()) return std::nullopt;
  return Finder(stage).find();
}

}  // namespace hone::schedule
