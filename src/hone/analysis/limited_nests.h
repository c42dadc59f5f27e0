// analysis/limited_nests.h - the loop nests of a schedule in a run of smaller sizes: loops that are
// neither unrolled nor vectorized end where the elements end that the run needs
// (ir/passes/limit_loops.h).
#pragma once

#include <span>

#include "hone/analysis/nest.h"

namespace hone::analysis {

// The part of an axis of a stage (spatial axes, then reduce axes) that a run needs.
struct AxisPart {
  int stage = 0;
  int axis = 0;
  int64_t points = 0;  // the first so many, at least 1
  int64_t period = 0;  // the part is that of each so many points; 0: of all
};

// The loops of a schedule that end with parts of axes, whatever the sizes of a run are: made once
// for all of them. A loop that several stages share is as long as the part of any stage wants it.
class NestLimits {
 public:
  NestLimits() = default;
  // The `nests` are those that build_nests() makes of the state and the bounds. Of `parts` it takes
  // all but the points.
  NestLimits(const schedule::State& state, const schedule::Bounds& bounds,
             std::span<const AxisPart> parts, std::span<const Nest> nests);
  // Shortens the loops of `nests`, a copy of those. `points` has AxisPart::points of all parts.
  void shorten(std::span<const int64_t> points, std::span<Nest> nests) const;

 private:
  // This is a loop that moves along an axis.
  struct Step {
    size_t loop;  // among all loops that stages have of their own or share
    int64_t length, extent;
    bool may_end;
  };
  std::vector<std::vector<Step>> parts_;    // from the longest step to the shortest
  std::vector<std::vector<size_t>> nests_;  // their loops; loops_: one that no part shortens
  size_t loops_ = 0;
};

}  // namespace hone::analysis
