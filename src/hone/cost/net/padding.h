// cost/net/padding.h - which axes of a net's values are tokens (statements, steps), and whether
// those that are padding have any effect. Where they have none, training computes only as many
// tokens as the longest program beside each other needs.
#pragma once

#include <optional>

#include "hone/cost/net/net.h"

namespace hone::cost::net {

// The place in Net::inputs of the mask that says which tokens of an input are no padding (of a mask
// its own); -1: the input has none, or the net does not read it.
[[nodiscard]] int mask_place(const Net& net, size_t input);

// For each node and each axis of its value: -1, or the place in Net::inputs of the mask whose
// tokens lie along the axis.
using TokenAxes = std::vector<std::vector<int>>;
// None if leaving out padding could change an output, or if the net names single tokens. Follows
// what is known of padded tokens through the net: a mask makes them 0 or, before a softmax, so low
// that they get no weight.
[[nodiscard]] std::optional<TokenAxes> find_token_axes(const Net& net);

}  // namespace hone::cost::net
