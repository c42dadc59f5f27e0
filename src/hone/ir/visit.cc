#include "hone/ir/visit.h"

namespace hone::ir {

Stmt replace_buffers(const Stmt& s, const BufferMap& map) {
  const auto other = [&](const BufferPtr& buffer) {
    const auto found = std::find_if(map.begin(), map.end(),
                                    [&](const auto& pair) { return pair.first == buffer; });
    return found == map.end() ? buffer : found->second;
  };
  const Stmt loaded = rewrite_exprs(s, [&](const Expr& e) -> Expr {
    return e->op == Op::kLoad ? load(other(e->buffer), e->args) : nullptr;
  });
  return rewrite_stmts(loaded, [&](const Stmt& node) -> Stmt {
    StmtNode copy = *node;
    copy.buffer = other(copy.buffer);
    for (BufferPtr& buffer : copy.buffers) buffer = other(buffer);
    for (Box& box : copy.boxes) box.buffer = other(box.buffer);
    return std::make_shared<const StmtNode>(std::move(copy));
  });
}

}  // namespace hone::ir
