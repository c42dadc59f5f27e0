// remote/operand_digest.h - the name by which operands are sent once.
#pragma once

#include "hone/remote/protocol.h"

namespace hone::remote {

// Returns the hash of the layout and of the memory of operands.
[[nodiscard]] Result<Digest> digest_of(const measure::Operands& operands);

}  // namespace hone::remote
