// compute/at_origin.h - a task whose results lie somewhere in larger buffers, as a task that writes
// whole buffers. Parts of a concatenation, which differ by the place where they begin only, are one
// task then, and its code is given the place as the begin of an argument.
#pragma once

#include <optional>

#include "hone/compute/dag.h"

namespace hone::compute {

struct AtOrigin {
  Dag dag;
  // Per param: the bytes behind the begin of the original's buffer at which that of `dag` begins, a
  // multiple of the alignment.
  std::vector<int64_t> offsets;
  // Per param: the number of leading dimensions along which the original has one index only, which
  // is 0 in `dag`.
  std::vector<size_t> fixed;
  // Per param: whether indices along the dimensions behind those differ from the original's. The
  // buffer of `dag` may begin with elements that it does not touch.
  std::vector<bool> shifted;
};

// Returns nothing if no result is a block of neighbouring elements in a larger buffer.
[[nodiscard]] std::optional<AtOrigin> at_origin(const Dag& dag, int64_t alignment);

}  // namespace hone::compute
