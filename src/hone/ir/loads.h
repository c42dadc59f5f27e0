// ir/loads.h - the buffers that an expression or a statement loads from.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] bool loads_from(const Expr& e, const Buffer* buffer);
// Returns whether the statement's own expressions load from the buffer; its body is not looked at.
[[nodiscard]] bool loads_from(const StmtNode& s, const Buffer* buffer);
// Returns whether the statement or one below it loads from the buffer, or calls a function that
// may.
[[nodiscard]] bool reads(const StmtNode& s, const Buffer* buffer);

}  // namespace hone::ir
