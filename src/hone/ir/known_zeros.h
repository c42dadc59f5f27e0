// ir/known_zeros.h - the zeros that a param is known to have (Param::zeros), for memory that is
// filled to try programs out.
#pragma once

#include "hone/ir/stmt.h"
#include "hone/tensor/tensor.h"

namespace hone::ir {

// The tensor has the shape of the param's buffer.
void put_known_zeros(const Param& param, Tensor& tensor);

}  // namespace hone::ir
