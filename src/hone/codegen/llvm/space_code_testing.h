// codegen/llvm/space_code_testing.h - for tests: the machine code of a family of tasks, by every
// sketch of the space and some of its points, on extents that leave rests of vectors, tiles and
// blocks, each extent in each place on one of the targets, between guard pages and by 2 to 64
// threads. The oracle is the naive program in the interpreter.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "hone/compute/dag.h"

namespace hone::codegen {

using Extents = std::array<int64_t, 4>;

struct Family {
  size_t places;
  int64_t most;  // of the product of the extents
  std::function<compute::Dag(const Extents&)> make;
  // What must be covered on every target: algorithm, which sketch of it, its tail. Besides, every
  // sketch of every space that is met must be.
  std::vector<std::string> sketches;
  bool is_sum = true;   // NaN and infinity go through it as through the naive program
  bool narrow = false;  // only sketches with constants in 16 bits (--accuracy fast)
  // Likewise: a part of a schedule's text.
  std::vector<std::string> steps = {};
  bool small_caches = false;  // space::with_small_caches: few data have blocks and panels
};

void check_family(const Family& family);

}  // namespace hone::codegen
