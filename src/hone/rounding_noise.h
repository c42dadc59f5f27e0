// rounding_noise.h - what rounding may do to a model's results: how much, and the same at random
// (internal to the facade).
#pragma once

#include "hone/model_check.h"

namespace hone {

// Changes the results of a naive run by as much as rounding may.
[[nodiscard]] ChangeResult rounding_noise(const Rounding& rounding, uint64_t seed);

}  // namespace hone
