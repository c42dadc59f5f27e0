// ir/known_zeros.h - writes the zeros that a param is known to have (Param::zeros) to memory that
// is filled for a trial run.
#pragma once

#include "hone/ir/stmt.h"
#include "hone/tensor/tensor.h"

namespace hone::ir {

// Sets the known zeros. The tensor has the shape of the param's buffer.
void put_known_zeros(const Param& param, Tensor& tensor);

}  // namespace hone::ir
