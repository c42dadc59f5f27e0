// graph/stored_value.h - copies a value from the place of its Storage in memory to a dense
// row-major tensor.
#pragma once

#include "hone/graph/graph.h"

namespace hone::graph {

// Returns the tensor. `buffer` is the start of the buffer in which the value is stored.
[[nodiscard]] Tensor stored_value(const Value& value, const void* buffer);

}  // namespace hone::graph
