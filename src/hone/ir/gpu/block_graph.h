// ir/gpu/block_graph.h - the order in which a block (or a warp) of a GPU may run its statements, as
// a graph.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct BlockNode {
  enum Kind : uint8_t {
    kUnit,     // a statement that accesses memory
    kBarrier,  // all threads meet
    kCommit,
    kWait,
    kEnter,  // `loop` begins
    kNext,   // the next iteration of `loop` begins
    kLeave,  // `loop` has ended
    kPlain,  // paths part or meet
  } kind;
  const StmtNode* statement = nullptr;      // kUnit, kWait
  const StmtNode* loop = nullptr;           // kEnter, kNext, kLeave
  int enter = -1;                           // kNext, kLeave: the node that enters the loop
  std::vector<const StmtNode*> loops = {};  // loops of the block around it, outermost first
  std::vector<Expr> conditions = {};        // that hold there, as the block took their paths
  std::vector<int> next = {};               // nodes that may follow
};

// Builds the graph; node 0 is the start. The statements must outlive it.
class BlockGraph {
 public:
  // `warp`: the statements are the body of a loop over warps.
  BlockGraph(const std::vector<Stmt>& body, bool warp);
  [[nodiscard]] const std::vector<BlockNode>& nodes() const { return nodes_; }

 private:
  int add(BlockNode node, int from);
  int sequence(const std::vector<Stmt>& body, int from);
  int statement(const StmtNode& s, int from);
  int loop(const StmtNode& s, int from);
  [[nodiscard]] bool is_control(const StmtNode& s) const;

  std::vector<BlockNode> nodes_;
  std::vector<const StmtNode*> loops_;
  std::vector<Expr> conditions_;
  bool warp_;
};

}  // namespace hone::ir
