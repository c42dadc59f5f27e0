#include "hone/ir/known_zeros.h"

namespace hone::ir {

void put_known_zeros(const Param& param, Tensor& tensor) {
  if (param.zeros.empty()) return;
  const Shape& shape = tensor.shape();
  HONE_ASSERT(param.zeros.size() == 2 * shape.size(), "two numbers per dimension");
  for (int64_t i = 0; i < tensor.size(); ++i) {
    bool outside = false;
    int64_t left = i;
    for (size_t d = shape.size(); d-- > 0;) {
      const int64_t at = left % shape[d];
      left /= shape[d];
      outside |= at < param.zeros[d] || at >= shape[d] - param.zeros[shape.size() + d];
    }
    if (outside) tensor.set(i, 0);
  }
}

}  // namespace hone::ir
