// compute/regions.h - which part of each operand a Dag touches: a box of its elements, with room to
// spare where that is not known. Two Dags that touch one buffer in boxes that do not meet do not
// depend on each other.
#pragma once

#include <vector>

#include "hone/compute/dag.h"

namespace hone::compute {

// Elements of a dense array whose coordinates along each dimension are low <= i < high.
struct Region {
  std::vector<int64_t> shape, low, high;
  bool nothing = false;  // no element, also of an array without dimensions
  [[nodiscard]] static Region none(std::vector<int64_t> shape);
  [[nodiscard]] static Region whole(std::vector<int64_t> shape);
  [[nodiscard]] bool empty() const;
  void include(const Region& other);  // of the same shape: the smallest box that holds both
};

struct Touched {
  Region reads, writes;
};
// Per param. Needs a verified Dag.
[[nodiscard]] std::vector<Touched> touched_regions(const Dag& dag);

// Whether no element is in both. The shapes may divide the same elements into other dimensions.
[[nodiscard]] bool disjoint(const Region& a, const Region& b);

}  // namespace hone::compute
