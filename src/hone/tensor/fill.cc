#include "hone/tensor/fill.h"

#include <algorithm>
#include <cstring>

namespace hone {

void fill_with(Tensor& tensor, const Tensor& element) {
  HONE_ASSERT(element.size() == 1 && element.dtype() == tensor.dtype(), "one element of the type");
  if (tensor.size() == 0) return;
  auto* const to = static_cast<char*>(tensor.data());
  const auto bytes = static_cast<size_t>(tensor.bytes());
  auto done = static_cast<size_t>(element.bytes());
  std::memcpy(to, element.data(), done);
  for (size_t more = 0; done < bytes; done += more) {
    more = std::min(done, bytes - done);
    std::memcpy(to + done, to, more);
  }
}

}  // namespace hone
