#include "hone/graph/stored_value.h"

#include <cstring>

namespace hone::graph {

Tensor stored_value(const Value& value, const void* buffer) {
  const Storage& storage = value.storage;
  const size_t rank = value.shape.size();
  HONE_ASSERT(storage.buffer >= 0 && storage.order.size() == rank, "the value has a place");
  Tensor result(value.dtype, value.shape);
  if (result.size() == 0) return result;
  // Elements from one point to the next along each dimension of the value.
  Shape stride(rank);
  int64_t position = 0, below = 1;
  for (size_t j = rank; j-- > 0;) {
    stride[static_cast<size_t>(storage.order[j])] = below * storage.step[j];
    position += storage.offset[j] * below;
    below *= storage.extent[j];
  }
  const auto width = static_cast<size_t>(dtype_bytes(value.dtype));
  const auto* from = static_cast<const char*>(buffer);
  auto* to = static_cast<char*>(result.data());
  Shape point(rank, 0);
  for (bool more = true; more;) {
    std::memcpy(to, from + static_cast<size_t>(position) * width, width);
    to += width;
    more = false;
    for (size_t d = rank; d-- > 0 && !more;) {
      position += stride[d];
      more = ++point[d] < value.shape[d];
      if (more) break;
      position -= stride[d] * value.shape[d];
      point[d] = 0;
    }
  }
  return result;
}

}  // namespace hone::graph
