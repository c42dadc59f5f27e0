// rounding_noise.h - what rounding may do to a model's results: how much, and the same at random
// (internal to the facade).
#pragma once

#include <cstdint>
#include <span>

#include "hone/commands/check/naive_values.h"
#include "hone/schedule/step.h"

namespace hone {

// How much a model's results may differ by rounding alone, relative to a tensor's largest
// magnitude.
struct Rounding {
  double tolerance = 5e-5;  // of an output, without asking further
  double products = 1e-6;   // of each product's result: by its algorithm and its weights' type
  double others = 3e-7;     // of each other result
};
// By the types of the model and the algorithms in its schedules.
[[nodiscard]] Rounding rounding_of(const graph::Graph& graph,
                                   std::span<const schedule::Steps> schedules);

// Changes the results of a naive run by as much as rounding may.
[[nodiscard]] ChangeResult rounding_noise(const Rounding& rounding, uint64_t seed);

}  // namespace hone
