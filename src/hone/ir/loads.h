// ir/loads.h - what an expression loads.
#pragma once

#include "hone/ir/expr.h"

namespace hone::ir {

[[nodiscard]] bool loads_from(const Expr& e, const Buffer* buffer);

}  // namespace hone::ir
