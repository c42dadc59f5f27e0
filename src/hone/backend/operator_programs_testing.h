// backend/operator_programs_testing.h - programs with every operator, cast and change of type of
// bits, whose results tests of back ends compare with the interpreter's.
#pragma once

#include <vector>

#include "hone/ir/stmt.h"

namespace hone::backend::testing {

struct OperatorProgram {
  ir::Program program;
  uint64_t seed;     // the seed of its arguments
  double tolerance;  // how far results may be off, relative to the largest one
};

// Each output of these programs is computed by one loop of this kind over n elements.
// Returns one program per type of element, with all operators of it.
[[nodiscard]] std::vector<OperatorProgram> operator_programs(int64_t n, ir::ForKind kind);
// Returns a program whose outputs are the bits of zeros that operators make.
[[nodiscard]] OperatorProgram signs_of_zeros(int64_t n, ir::ForKind kind);
// Returns one program per type, with its bits as all types of the same width.
[[nodiscard]] std::vector<OperatorProgram> bit_programs(int64_t n, ir::ForKind kind);
// Returns one program per type, with casts to all others.
[[nodiscard]] std::vector<OperatorProgram> cast_programs(int64_t n, ir::ForKind kind);

}  // namespace hone::backend::testing
