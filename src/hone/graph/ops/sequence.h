// graph/ops/sequence.h - the operators on sequences and optional values.
#pragma once

#include <span>

#include "hone/graph/op.h"

namespace hone::graph {

[[nodiscard]] std::span<const Op> sequence_ops();

}  // namespace hone::graph
