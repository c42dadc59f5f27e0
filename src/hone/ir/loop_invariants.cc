#include "hone/ir/loop_invariants.h"

#include <algorithm>
#include <array>
#include <bit>

#include "hone/base/hash.h"
#include "hone/ir/visit.h"

namespace hone::ir {
namespace {

bool is_leaf(const ExprNode& e) {
  return e.op == Op::kInt || e.op == Op::kFloat || e.op == Op::kVar;
}

bool may_fail(const ExprNode& e) {
  const bool divides =
      e.op == Op::kDiv || e.op == Op::kFloorDiv || e.op == Op::kFloorMod || e.op == Op::kRem;
  return divides && !is_float(e.type) && (!is_const_int(e.args[1]) || e.args[1]->int_value == 0);
}

// The level of an expression is the number of loops around the innermost one whose variable is in
// it, that one included.
class Finder {
 public:
  void statement(const StmtNode& s) {
    for_each_expr(s, [&](const Expr& e) { place(e, level(e)); });
    if (s.kind != StmtKind::kFor) {
      for (const Stmt& child : s.body) statement(*child);
      return;
    }
    loops_.push_back(&s);
    const auto bound = levels_.try_emplace(s.var.get(), depth());
    for (const Stmt& child : s.body) statement(*child);
    if (bound.second) levels_.erase(s.var.get());
    loops_.pop_back();
  }
  LoopInvariants take() && { return std::move(found_); }

 private:
  [[nodiscard]] int depth() const { return static_cast<int>(loops_.size()); }
  void place(const Expr& e, int level) {
    if (level < depth() && !is_leaf(*e)) found_[loops_[level]].push_back(&e);
  }
  int level(const Expr& e) {
    if (e->op == Op::kVar) {
      const auto it = levels_.find(e->var.get());
      return it == levels_.end() ? depth() : it->second;
    }
    if (e->op == Op::kLoad || e->args.size() > 3 || may_fail(*e)) {
      for (const Expr& arg : e->args) place(arg, level(arg));
      return depth();
    }
    std::array<int, 3> of_args = {};
    for (size_t i = 0; i < e->args.size(); ++i) of_args[i] = level(e->args[i]);
    const int highest = *std::max_element(of_args.begin(), of_args.end());
    for (size_t i = 0; i < e->args.size(); ++i) {
      if (of_args[i] < highest) place(e->args[i], of_args[i]);
    }
    return highest;
  }

  LoopInvariants found_;
  std::vector<const StmtNode*> loops_;          // around the statement, outermost first
  std::unordered_map<const Var*, int> levels_;  // of their variables
};

}  // namespace

size_t HashTree::operator()(const Expr* e) const {
  const ExprNode& node = **e;
  uint64_t h = static_cast<uint64_t>(node.op) << 8 | static_cast<uint64_t>(node.type);
  h = hash_combine(h, static_cast<uint64_t>(node.int_value));
  h = hash_combine(h, std::bit_cast<uint64_t>(node.float_value));
  h = hash_combine(h, std::bit_cast<uint64_t>(node.var.get()));
  h = hash_combine(h, std::bit_cast<uint64_t>(node.buffer.get()));
  for (const Expr& arg : node.args) h = hash_combine(h, (*this)(&arg));
  return h;
}

LoopInvariants loop_invariants(const StmtNode& body) {
  Finder finder;
  finder.statement(body);
  return std::move(finder).take();
}

}  // namespace hone::ir
