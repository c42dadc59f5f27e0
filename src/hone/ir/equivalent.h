// ir/equivalent.h - compares two programs up to the names of variables and buffers.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] bool equivalent(const Program& a, const Program& b);

}  // namespace hone::ir
