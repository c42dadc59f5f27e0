// cost/net/head.h - the last linear layer of a net. The score is linear in its weights: what they
// are multiplied with, as an output of the net, is all that is needed to change them later.
#pragma once

#include "hone/base/status.h"
#include "hone/cost/net/net.h"

namespace hone::cost::net {

inline constexpr std::string_view kHeadOutput = "head";

// The net with one more output "head" of [-1, N]: its score is the sum of head x weights, N of
// them, and of what does not depend on these. An error if the score is not made so.
[[nodiscard]] Result<Net> with_head(Net net);

}  // namespace hone::cost::net
