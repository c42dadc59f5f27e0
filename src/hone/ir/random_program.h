// ir/random_program.h - random valid programs for fuzz tests: every access in bounds, every output
// element written, iterations of parallel loops independent, vectorized loops innermost.
#pragma once

#include "hone/base/rng.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

struct RandomProgramOptions {
  int64_t max_extent = 9;      // of a buffer's dimension or a loop
  bool only_f32 = false;       // else other types occur as well
  bool transcendental = true;  // tanh, exp, ...: results of machine code differ in the last bits
};

// The same seed and options give the same program.
[[nodiscard]] Program random_program(uint64_t seed, const RandomProgramOptions& options = {});

}  // namespace hone::ir
