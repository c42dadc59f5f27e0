// graph/ops/microsoft_quantized.h - the families of com.microsoft's operators on quantised numbers,
// and of those that stand beside them in language models.
#pragma once

#include <span>

#include "hone/graph/op.h"

namespace hone::graph {

[[nodiscard]] std::span<const Op> microsoft_block_ops();
[[nodiscard]] std::span<const Op> microsoft_grouped_ops();
[[nodiscard]] std::span<const Op> microsoft_integer_ops();
[[nodiscard]] std::span<const Op> microsoft_qlinear_ops();

}  // namespace hone::graph
