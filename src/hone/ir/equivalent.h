// ir/equivalent.h - whether two programs are the same but for the names of variables and buffers.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

[[nodiscard]] bool equivalent(const Program& a, const Program& b);

}  // namespace hone::ir
