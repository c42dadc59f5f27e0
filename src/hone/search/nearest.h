// search/nearest.h - by which measure the tuned tasks are found whose schedules a new task starts
// from (--nearest): the distance of their shapes, or Fasor's rank correlation of key attributes
// (section 6.1), below which nothing is taken over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone::search {

struct Nearest {
  enum class By : uint8_t { kShapes, kSpearman } by = By::kShapes;
  double tau = 0.6;  // least correlation, with kSpearman
  int sources = 48;  // records that are tried at most
};

// Parses NAME or NAME:OPTION=VALUE,... An error lists the names, or the options of the named one.
[[nodiscard]] Result<Nearest> parse_nearest(std::string_view text);

// The key attributes of a task are its extents, as its shape_text() (search/transfer.h) has them.
// Both functions compare those at the same places of two such texts.

// Returns how unlike two tasks are: the mean difference of the logarithms of the extents; infinity
// if they have no extents in common.
[[nodiscard]] double shape_distance(std::string_view a, std::string_view b);
// Returns the correlation of the ranks of the extents, from -1 to 1; 0 if they have fewer than two
// in common. It sees which extents are the larger ones, but not how large: twice as much of all is
// the same.
[[nodiscard]] double attribute_correlation(std::string_view a, std::string_view b);

}  // namespace hone::search
