// graph/equal_symbols.h - finds symbols whose ranges end at different sizes though the model wants
// them to be equal. Where they end at one size, size_ties.h finds them.
#pragma once

#include <algorithm>

#include "hone/graph/import_ranges.h"

namespace hone::graph {

struct EqualSymbols {
  SizeSymbol one, other;
  [[nodiscard]] bool have_common_size() const {
    return std::max(one.min, other.min) <= std::min(one.max, other.max);
  }
};

// The parameter `failure` is that of an import with these options, which is not valid at the
// largest sizes. Returns pairs of symbols with which the model is valid there if they are equal,
// but not if they differ by one. This takes an inference or two for each pair.
[[nodiscard]] std::vector<EqualSymbols> equal_symbols(const ImportOptions& options,
                                                      const RangeFailure& failure,
                                                      const ReadModel& read);

// Returns how to mend the ranges of such symbols; empty if there are none.
[[nodiscard]] std::string advice_for_equal(const std::vector<EqualSymbols>& symbols);

}  // namespace hone::graph
