// graph/extent_nodes.h - says what nodes of the file compute along a dimension that varies by other
// nodes of the file, in terms of its extent, which rules for sizes know.
#pragma once

#include <functional>

#include "hone/graph/expand.h"

namespace hone::graph {

// Adds nodes of the file and constants to it.
struct NodeMaker {
  std::function<ValueId(const char* type, std::vector<ValueId> inputs, NamedAttributes attributes)>
      node;
  std::function<ValueId(Tensor tensor)> constant;
};

// A transform over all elements along an axis of x, whose last dimension has the one or the two
// numbers of each.
struct SpectrumOfExtent {
  ValueId x = kNoValue;
  int64_t rank = 0, axis = 0;
  DType dtype = DType::kF32;
  bool is_complex = false;  // x has two numbers
  bool inverse = false, onesided = false;
};
// Returns the result of a DFT: products with the matrices of its waves, which the extent decides.
[[nodiscard]] ValueId spectrum_of(const NodeMaker& make, const SpectrumOfExtent& dft);

// Returns x, of this type, divided by the root of the extent of a dimension of it.
[[nodiscard]] ValueId divided_by_root(const NodeMaker& make, ValueId x, DType dtype, int64_t axis);

// Returns the results of a Split into so many parts of one length, of which the last ones have what
// is left. The numbers of their elements depend on data.
[[nodiscard]] std::vector<ValueId> parts_of_extent(const NodeMaker& make, ValueId x, int64_t axis,
                                                   int64_t count);

}  // namespace hone::graph
