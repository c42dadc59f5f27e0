// graph/import_steps.h - finds symbols at multiples of which alone a model is valid, such as
// samples that it takes in frames, or the steps of time that a U-Net halves.
#pragma once

#include "hone/graph/import_ranges.h"

namespace hone::graph {

struct SymbolStep {
  std::string name;
  int64_t step = 1;
  DimRange range;         // both ends are multiples of the step
  bool is_given = false;  // by an option, not by the rule (open_shapes.h)
  bool is_whole = true;   // the range that was given is this one
};

// The parameter `failure` is that of an import with these options at which the model is valid at
// the largest sizes only. Returns the symbols of which one less than the largest is not valid with
// the others at their largest, but a step less is: the least divisor of the largest one for which
// that is so. This takes some inferences for each symbol.
[[nodiscard]] std::vector<SymbolStep> symbol_steps(const ImportOptions& options,
                                                   const RangeFailure& failure,
                                                   const ReadModel& read);

// Gives a symbol a range, whether an option has given it one by its name, by the shape of an input,
// or not at all.
void set_symbol_range(ImportOptions& options, const RangeFailure& failure, const std::string& name,
                      const DimRange& range);

}  // namespace hone::graph
