// ir/passes/index_places.h - facts about indices that are data: which elements they are of.
#pragma once

#include <span>

#include "hone/ir/passes/size_needs.h"

namespace hone::ir {

// An operand with indices of elements along a dimension of `data`: element k is the index of an
// element that the run has, which is within these limits, if k is less than the size `within`; or
// always, if that is -1.
struct IndexPlaces {
  BufferPtr indices, data;
  int within = 0;
  std::vector<SizeLimit> limits;  // whatever the dimension; without a scale or an offset
};

// Adds where the element lies that is read of the data at these places: within what the run has, if
// the index of it is one that is needed. `needs` are those of the load.
void add_places(const IndexPlaces& known, std::span<const Expr> places, const Ranges& ranges,
                std::vector<Need>& needs);

}  // namespace hone::ir
