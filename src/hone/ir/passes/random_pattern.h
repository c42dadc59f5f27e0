// ir/passes/random_pattern.h - random programs of the forms that passes look for, or almost. They
// test the passes that hardly ever change what ir/random_program.h makes. Every access is in
// bounds.
#pragma once

#include <span>

#include "hone/base/rng.h"
#include "hone/ir/stmt.h"

namespace hone::ir {

struct RandomPattern {
  std::string_view name;
  Program (*make)(Rng&);
};
[[nodiscard]] std::span<const RandomPattern> random_patterns();

// Returns a random program or one of a pattern; the seed decides.
[[nodiscard]] Program random_case(uint64_t seed);

}  // namespace hone::ir
