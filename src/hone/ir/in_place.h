// ir/in_place.h - which inputs a program may overwrite with an output: those of which it reads an
// element only to compute the element of the output at the same place. The two may then share
// their memory.
#pragma once

#include "hone/ir/stmt.h"

namespace hone::ir {

struct InPlacePair {
  size_t input, output;  // of Program::params
};

// Relies on what lowering gives: a program that does not read its output stores each element of it
// once. The pairs come in the order of the params.
[[nodiscard]] std::vector<InPlacePair> in_place_pairs(const Program& program);

}  // namespace hone::ir
