// graph/size_ties.h - finds which symbols have to be equal for a model to be valid: those of inputs
// whose elements it combines.
#pragma once

#include <set>

#include "hone/graph/size_probes.h"

namespace hone::graph {

// Symbols that are one in every run. There are two of them at least.
using TiedSymbols = std::vector<std::string>;

// The graph is one that is valid at the largest sizes (size_probes.h) but not at all others.
// Returns the smallest sets of symbols with one largest size such that the model is valid if one of
// the sets alone is smaller. The symbols `unnamed`, which no option can name, are in none. This
// takes many inferences.
[[nodiscard]] std::vector<TiedSymbols> symbols_to_tie(const Graph& raw, const InputSizes& sizes,
                                                      const std::set<std::string>& unnamed);

// An error at some of the sizes ends so where such options may help.
inline constexpr std::string_view kValidRanges =
    "give ranges within which the model is valid, and extents that are always equal one symbol";
// Returns "--shape n=m": the options that make symbols equal, or an example of such if there are
// none.
[[nodiscard]] std::string tie_options(const std::vector<TiedSymbols>& ties);

}  // namespace hone::graph
