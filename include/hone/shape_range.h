// shape_range.h - the sizes that an input of a model may have in a run:
//
//   options.model.ranges["ids"] = {{1, 8, "batch"}, {1, 512, "sequence"}};
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone {

// The extents that a dimension may have: a number if both ends are equal, else a range that
// includes them. Dimensions with the same symbol have the same extent in a run. With a symbol and
// ends of 0, the range is the symbol's, which another dimension or the name of the symbol gives.
struct DimRange {
  int64_t min = 0, max = 0;
  std::string symbol;
  [[nodiscard]] bool is_number() const { return symbol.empty() && min == max; }
};
using ShapeRange = std::vector<DimRange>;

}  // namespace hone
