// backend/cpu/space_code_testing.h - tests the machine code of a family of tasks: every sketch of
// the space and some of its points, on extents that leave tails of vectors, tiles and blocks, each
// extent in each place on one of the targets, between guard pages and with 2 to 64 threads. The
// oracle is the naive program in the interpreter.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "hone/compute/dag.h"

namespace hone::backend::cpu {

using Extents = std::array<int64_t, 4>;

struct Family {
  size_t places;
  int64_t most;  // limit of the product of the extents
  std::function<compute::Dag(const Extents&)> make;
  // The sketches that must be covered on every target, by algorithm, number of the sketch and tail.
  // In addition, every sketch of every space that occurs must be covered.
  std::vector<std::string> sketches;
  bool is_sum = true;   // NaN and infinity propagate as in the naive program
  bool narrow = false;  // tests only sketches with constants in 16 bits (--accuracy fast)
  // Parts of schedule texts that must be covered as well.
  std::vector<std::string> steps = {};
  // Uses space::with_small_caches, so that small data has blocks and panels.
  bool small_caches = false;
};

void check_family(const Family& family);

}  // namespace hone::backend::cpu
