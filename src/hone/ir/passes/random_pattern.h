// ir/passes/random_pattern.h - random programs that look like what a pass looks for, or almost: the
// passes that hardly ever change what ir/random_program.h makes. Every access is in bounds.
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

// A random program, or one of a pattern, by the seed.
[[nodiscard]] Program random_case(uint64_t seed);

}  // namespace hone::ir
