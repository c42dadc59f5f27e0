// ir/in_place.h - finds the inputs that an output may overwrite: a program reads an element of such
// an input only to compute the element of the output at the same place. The two may then share
// their memory.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct InPlacePair {
  size_t input, output;  // indices of Program::params
};

// Returns the pairs in the order of the params. It relies on an invariant of lowering: a program
// that does not read its output stores each element of it once.
[[nodiscard]] std::vector<InPlacePair> in_place_pairs(const Program& program);

}  // namespace hone::ir
