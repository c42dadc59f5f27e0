// graph/ops/einsum.h - the equation of an Einsum.
#pragma once

#include <string>
#include <vector>

#include "hone/graph/op.h"

namespace hone::graph {

// Labels as characters, one for each dimension. The dimensions of an ellipsis are the characters
// '0', '1', ..., aligned at the last one, as broadcasting does.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result;
};

// Writes out what the equation of operands with these shapes leaves away: ellipses, the result.
[[nodiscard]] Result<EinsumEquation> read_equation(const std::string& text,
                                                   const std::vector<Shape>& shapes);

}  // namespace hone::graph
