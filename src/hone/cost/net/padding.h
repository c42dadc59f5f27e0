// cost/net/padding.h - finds the axes of a net's values that are tokens (statements, steps), and
// whether padding tokens have any effect. If they have none, training computes only as many tokens
// as the longest program in a batch needs.
#pragma once

#include <optional>

#include "hone/cost/net/net.h"

namespace hone::cost::net {

// Returns the index in Net::inputs of the mask that says which tokens of an input are real (a
// mask's own index for itself); -1 if the input has none or the net does not read it.
[[nodiscard]] int mask_place(const Net& net, size_t input);
// Returns whether the tokens of an input lie along its first two axes: the weights of the edges of
// a graph.
[[nodiscard]] bool is_square(const NetInput& input);

// For each node and each axis of its value: the index in Net::inputs of the mask whose tokens are
// along the axis, or -1.
using TokenAxes = std::vector<std::vector<int>>;
// Returns nothing if leaving out padding could change an output, or if the net accesses single
// tokens. It propagates what is known of padded tokens through the net: a mask makes them 0 or,
// before a softmax, so low that they get no weight.
[[nodiscard]] std::optional<TokenAxes> find_token_axes(const Net& net);

}  // namespace hone::cost::net
