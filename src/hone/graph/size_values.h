// graph/size_values.h - the numbers of one run of a graph whose inputs vary (graph/size_form.h).
#pragma once

#include "hone/graph/size_form.h"

namespace hone::graph {

// Returns what `hone.sizes` holds: the values of all forms, with zeros behind them.
[[nodiscard]] std::vector<int64_t> sizes_of(const Varying& varying,
                                            const std::vector<int64_t>& symbols);
// Returns the largest, or the smallest, values of all symbols.
[[nodiscard]] std::vector<int64_t> largest_symbols(const Varying& varying);
[[nodiscard]] std::vector<int64_t> smallest_symbols(const Varying& varying);
// Returns in what steps a symbol counts: 1, or that of ImportOptions::side_step or steps, which
// is its factor in the inputs.
[[nodiscard]] int64_t step_of(const Varying& varying, int symbol);
// Returns the shape of a value with these parts, of which the largest shape is given.
[[nodiscard]] std::vector<int64_t> shape_of(const ShapeParts& parts,
                                            const std::vector<int64_t>& largest,
                                            const std::vector<int64_t>& sizes);

}  // namespace hone::graph
