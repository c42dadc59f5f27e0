// graph/stored_value.h - a value as its Storage has it in memory, made dense and row-major.
#pragma once

#include "hone/graph/graph.h"

namespace hone::graph {

// `buffer` is the start of the buffer in which the value is stored.
[[nodiscard]] Tensor stored_value(const Value& value, const void* buffer);

}  // namespace hone::graph
