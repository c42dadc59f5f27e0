// rounding_noise.h - estimates how much rounding may change a model's results, and changes results
// at random by as much (internal).
#pragma once

#include <cstdint>
#include <span>

#include "hone/commands/check/naive_values.h"
#include "hone/schedule/step.h"

namespace hone {

// The relative differences that rounding alone may cause.
struct Rounding {
  // The error of an output, relative to its largest magnitude, that is accepted without further
  // tests.
  double tolerance = 5e-5;
  // The error of the result of a product, by its algorithm and the type of its weights.
  double products = 1e-6;
  double others = 3e-7;  // error of every other result
};
// Returns the rounding for the types of the model and the algorithms in its schedules.
[[nodiscard]] Rounding rounding_of(const graph::Graph& graph,
                                   std::span<const schedule::Steps> schedules);

// Returns a function that changes the results of a naive run by as much as rounding may.
[[nodiscard]] ChangeResult rounding_noise(const Rounding& rounding, uint64_t seed);

}  // namespace hone
