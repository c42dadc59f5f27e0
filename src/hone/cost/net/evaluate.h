// cost/net/evaluate.h - what a net says of a batch, computed plainly in double precision: the
// oracle for training and for compiled inference. Slow.
#pragma once

#include "hone/cost/net/net.h"

namespace hone::cost::net {

// What a net reads of `rows` candidates: for each of its inputs rows x element_count(dims) numbers.
struct NetBatch {
  int64_t rows = 0;
  std::vector<std::vector<float>> inputs;  // as Net::inputs
};

// Normal values to compare two ways of computing a net by; masks have 1 to all ones, in front.
[[nodiscard]] NetBatch random_batch(const Net& net, int64_t rows, uint64_t seed);

// For each of Net::outputs rows x element_count numbers. Every parameter must have its values.
[[nodiscard]] std::vector<std::vector<float>> evaluate(const Net& net, const NetBatch& batch);

}  // namespace hone::cost::net
