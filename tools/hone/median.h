// tools/hone/median.h - the middle of some times.
#pragma once

#include <algorithm>
#include <vector>

namespace hone::tool {

// Returns the mean of the middle two for an even number; there is at least one.
[[nodiscard]] inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace hone::tool
