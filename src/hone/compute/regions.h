// compute/regions.h - the part of each operand that a Dag touches, as a bounding box of elements.
// It may be too large where the exact elements are not known. Two Dags whose boxes in one buffer do
// not overlap do not depend on each other.
#pragma once

#include <vector>

#include "hone/compute/dag.h"

namespace hone::compute {

// The elements of a dense array whose coordinates along each dimension are low <= i < high.
struct Region {
  std::vector<int64_t> shape, low, high;
  bool nothing = false;  // has no element; also tells an empty array without dimensions
  [[nodiscard]] static Region none(std::vector<int64_t> shape);
  [[nodiscard]] static Region whole(std::vector<int64_t> shape);
  [[nodiscard]] bool empty() const;
  // Grows to the smallest box that holds both; the shapes must be equal.
  void include(const Region& other);
};

struct Touched {
  Region reads, writes;
};
// Returns the regions per param. The Dag must be verified.
[[nodiscard]] std::vector<Touched> touched_regions(const Dag& dag);

// Returns true if certainly no element is in both. The shapes may divide the same elements into
// different dimensions.
[[nodiscard]] bool disjoint(const Region& a, const Region& b);

}  // namespace hone::compute
