#include "hone/ir/loads.h"

#include <algorithm>

namespace hone::ir {

bool loads_from(const Expr& e, const Buffer* buffer) {
  bool found = false;
  visit(e,
        [&](const Expr& node) { found |= node->op == Op::kLoad && node->buffer.get() == buffer; });
  return found;
}

bool loads_from(const StmtNode& s, const Buffer* buffer) {
  const auto loads = [&](const Expr& e) { return e && loads_from(e, buffer); };
  return loads(s.min) || loads(s.extent) || loads(s.condition) || loads(s.value) ||
         std::any_of(s.indices.begin(), s.indices.end(), loads);
}

}  // namespace hone::ir
