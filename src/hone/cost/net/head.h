// cost/net/head.h - the last linear layer of a net. The score is linear in its weights, so with the
// layer's input as an output of the net the weights can be changed later.
#pragma once

#include "hone/base/status.h"
#include "hone/cost/net/net.h"

namespace hone::cost::net {

inline constexpr std::string_view kHeadOutput = "head";

// Adds an output "head" of [-1, N] to the net: its score is the dot product of head and N weights,
// plus a part that does not depend on them. It is an error if the score has another form.
[[nodiscard]] Result<Net> with_head(Net net);

}  // namespace hone::cost::net
