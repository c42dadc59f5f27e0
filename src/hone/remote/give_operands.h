// remote/give_operands.h - how data gets to a server: it is offered by its hash, and what the
// server does not have yet is sent.
#pragma once

#include <functional>
#include <string>

#include "hone/remote/link.h"
#include "hone/remote/protocol.h"

namespace hone::remote {

// Returns why the server cannot have these operands; "" if it has them. `take_other` gets messages
// that are no answer to the offer.
[[nodiscard]] Result<std::string> give(Link& link, const measure::Operands& operands,
                                       const Digest& digest,
                                       const std::function<Status(const std::string&)>& take_other);

}  // namespace hone::remote
