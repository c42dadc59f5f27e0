// ir/loads.h - what an expression or a statement loads.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] bool loads_from(const Expr& e, const Buffer* buffer);
// In its own expressions, not in its body.
[[nodiscard]] bool loads_from(const StmtNode& s, const Buffer* buffer);
// Whether it or a statement below loads from the buffer, or calls a function that may.
[[nodiscard]] bool reads(const StmtNode& s, const Buffer* buffer);

}  // namespace hone::ir
