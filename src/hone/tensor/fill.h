// tensor/fill.h - arrays of one element everywhere.
#pragma once

#include "hone/tensor/tensor.h"

namespace hone {

// Copies the one element of a tensor to all elements of another one of its type.
void fill_with(Tensor& tensor, const Tensor& element);

}  // namespace hone
