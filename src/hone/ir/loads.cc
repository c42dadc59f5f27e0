#include "hone/ir/loads.h"

namespace hone::ir {

bool loads_from(const Expr& e, const Buffer* buffer) {
  bool found = false;
  visit(e,
        [&](const Expr& node) { found |= node->op == Op::kLoad && node->buffer.get() == buffer; });
  return found;
}

}  // namespace hone::ir
