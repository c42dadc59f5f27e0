// ir/random_program.h - random valid programs for fuzz tests. Every access is in bounds, every
// output element is written, iterations of parallel loops are independent, and vectorized loops are
// innermost.
#pragma once

#include "hone/base/rng.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

struct RandomProgramOptions {
  int64_t max_extent = 9;  // largest extent of a buffer's dimension or a loop
  bool only_f32 = false;   // other element types occur as well if this is false
  // Uses tanh, exp, ..., whose results in machine code differ in the last bits.
  bool transcendental = true;
};

// Makes a program. The same seed and options give the same program.
[[nodiscard]] Program random_program(uint64_t seed, const RandomProgramOptions& options = {});

}  // namespace hone::ir
