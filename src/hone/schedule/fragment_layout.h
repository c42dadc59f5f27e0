// schedule/fragment_layout.h - where the threads of a block keep the results of a stage in
// registers if it has several, such as running sums and the maxima that they are relative to.
//
// The leading digits are the stage's loops over threads, as those of any fragment. Results that do
// not move with such a loop are computed by all of its threads alike, and each has a copy:
//   for t:  thread m.0:  thread d.0:  most[m] = ..;  sums[m, d] = ..
//   ->  most: [m.0, copies of d.0, m.1],  sums: [m.0, d.0, m.1, d.1]
#pragma once

#include "hone/schedule/bounds.h"

namespace hone::schedule {

// A digit of a layout that is the number of the thread along a loop: each has a copy.
inline constexpr int kCopies = -1;

// Returns the digits of an output of such a stage. It is an error unless each dimension is one axis
// with one loop over threads at most, and each thread of a loop has points of its axis.
[[nodiscard]] Result<std::vector<LayoutDim>> fragment_layout(const State& state,
                                                             const Bounds& bounds, int s,
                                                             int output);
// Returns the layout of any output as it is stored; empty if it is row-major.
[[nodiscard]] Result<std::vector<LayoutDim>> layout_of(const State& state, const Bounds& bounds,
                                                       int s, int output);

}  // namespace hone::schedule
