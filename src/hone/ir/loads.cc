#include "hone/ir/loads.h"

#include "hone/ir/visit.h"

namespace hone::ir {

bool loads_from(const Expr& e, const Buffer* buffer) {
  bool found = false;
  visit(e,
        [&](const Expr& node) { found |= node->op == Op::kLoad && node->buffer.get() == buffer; });
  return found;
}

bool loads_from(const StmtNode& s, const Buffer* buffer) {
  return any_expr(s, [&](const Expr& e) { return loads_from(e, buffer); });
}

bool reads(const StmtNode& s, const Buffer* buffer) {
  return any_stmt(s, [&](const StmtNode& node) {
    return loads_from(node, buffer) ||
           std::any_of(node.buffers.begin(), node.buffers.end(),
                       [&](const BufferPtr& b) { return b.get() == buffer; }) ||
           std::any_of(node.boxes.begin(), node.boxes.end(),
                       [&](const Box& box) { return box.buffer.get() == buffer; });
  });
}

}  // namespace hone::ir
