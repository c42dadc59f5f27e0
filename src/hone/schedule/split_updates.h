// schedule/split_updates.h - divides a body that copies and then updates, as scatters do, so that
// threads share the updates:
//
//   y = x     for u in 0..n { y[place(u), i] = f(y[place(u), i], v[u, i]) }
//   -->  points of y:  y = x
//        points u:     first = n   t = x[place(u), i]
//                      for w in 0..n { if place(w) == place(u) { first = min(first, w)  t = f(t,
//                      v[w, i]) } } if first == u { y[place(u), i] = t }
//
// Where several updates have one element, the first one's point applies all, in their order. So
// each element has the value that it has in the order of the updates, to the last bit, and no two
// points write the same. Each point compares its place with those of all updates.
#pragma once

#include "hone/compute/dag.h"

namespace hone::schedule {

struct DividedUpdates {
  compute::Stage copy;     // a pointwise stage
  compute::Stage updates;  // a body, whose loops over elements of an update can be lifted
  int64_t searched = 1;    // updates with which each one compares its place
  int64_t points = 1;      // updates of all results, with all their elements
};
// It is an error if the body is not of that form.
[[nodiscard]] Result<DividedUpdates> split_updates(const compute::Stage& stage,
                                                   std::string copy_name);

}  // namespace hone::schedule
