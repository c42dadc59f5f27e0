// learn/normalisation.h - scales the inputs of a net by what its training data has.
#pragma once

#include "hone/cost/net/evaluate.h"

namespace hone::learn {

// Sets every constant NAME.mean and NAME.scale so that the input NAME has mean 0 and deviation 1
// over the rows without padding. A number that does not vary becomes 0.
void set_normalisation(cost::net::Net& net, const cost::net::NetBatch& rows);

}  // namespace hone::learn
