// cost/net/evaluate.h - evaluates a net on a batch plainly in double precision. It is slow, and is
// the oracle for training and for compiled inference.
#pragma once

#include "hone/cost/net/net.h"

namespace hone::cost::net {

// The inputs of a net for `rows` candidates: rows x element_count(dims) numbers for each of its
// inputs.
struct NetBatch {
  int64_t rows = 0;
  std::vector<std::vector<float>> inputs;  // in the order of Net::inputs
};

// Returns normally distributed values by which two ways of computing a net are compared; a mask has
// ones for its first tokens, from one of them to all.
[[nodiscard]] NetBatch random_batch(const Net& net, int64_t rows, uint64_t seed);

// Returns rows x element_count numbers for each of Net::outputs. Every parameter must have its
// values.
[[nodiscard]] std::vector<std::vector<float>> evaluate(const Net& net, const NetBatch& batch);

}  // namespace hone::cost::net
