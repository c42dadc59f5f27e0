#include "hone/ir/gpu/block_graph.h"

#include "hone/ir/visit.h"

namespace hone::ir {

BlockGraph::BlockGraph(const std::vector<Stmt>& body, bool warp) : warp_(warp) {
  nodes_.push_back({.kind = BlockNode::kPlain});
  sequence(body, 0);
}

int BlockGraph::add(BlockNode node, int from) {
  node.loops = loops_;
  node.conditions = conditions_;
  nodes_.push_back(std::move(node));
  const int made = static_cast<int>(nodes_.size()) - 1;
  nodes_[from].next.push_back(made);
  return made;
}

int BlockGraph::sequence(const std::vector<Stmt>& body, int from) {
  for (const Stmt& s : body) from = statement(*s, from);
  return from;
}

// Whether the statements inside follow each other for the block (or warp) as a whole.
bool BlockGraph::is_control(const StmtNode& s) const {
  switch (s.kind) {
    case StmtKind::kBlock:
    case StmtKind::kAlloc: return true;
    case StmtKind::kFor:
      if (is_thread_loop(s.for_kind)) return false;
      [[fallthrough]];
    case StmtKind::kIf:
      // A loop over elements that the warp shares among its lanes is one statement.
      return !warp_ || any_stmt(s, [](const StmtNode& node) {
        return node.kind == StmtKind::kMatrix || node.kind == StmtKind::kBarrier ||
               (node.kind == StmtKind::kFor && node.for_kind == ForKind::kLane);
      });
    default: return false;
  }
}

int BlockGraph::statement(const StmtNode& s, int from) {
  // The block meets before roles begin and after they have ended.
  if ((s.kind == StmtKind::kBarrier && s.warp == warp_) || s.kind == StmtKind::kRoles)
    return add({.kind = BlockNode::kBarrier}, from);
  if (s.kind == StmtKind::kCommit) return add({.kind = BlockNode::kCommit}, from);
  if (s.kind == StmtKind::kWait) return add({.kind = BlockNode::kWait, .statement = &s}, from);
  if (!is_control(s)) return add({.kind = BlockNode::kUnit, .statement = &s}, from);
  if (s.kind == StmtKind::kFor) return loop(s, from);
  if (s.kind != StmtKind::kIf) return sequence(s.body, from);
  conditions_.push_back(s.condition);
  const int end = sequence(s.body, from);
  conditions_.pop_back();
  const int after = add({.kind = BlockNode::kPlain}, end);
  nodes_[from].next.push_back(after);
  return after;
}

int BlockGraph::loop(const StmtNode& s, int from) {
  if (s.for_kind == ForKind::kParallel) return sequence(s.body, from);
  loops_.push_back(&s);
  const int enter = add({.kind = BlockNode::kEnter, .loop = &s}, from);
  nodes_[enter].enter = enter;
  const int first = add({.kind = BlockNode::kPlain}, enter);
  const int last = sequence(s.body, first);
  if (!is_const_int(s.extent, 1)) {
    const int next = add({.kind = BlockNode::kNext, .loop = &s, .enter = enter}, last);
    nodes_[next].next.push_back(first);
  }
  loops_.pop_back();
  const int after = add({.kind = BlockNode::kLeave, .loop = &s, .enter = enter}, last);
  const bool runs = is_const_int(s.extent) && s.extent->int_value > 0;
  if (!runs) nodes_[from].next.push_back(after);
  return after;
}

}  // namespace hone::ir
