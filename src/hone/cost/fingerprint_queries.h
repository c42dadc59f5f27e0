// cost/fingerprint_queries.h - the schedules and machines of fingerprints (fingerprint.h).
#pragma once

#include <string>
#include <vector>

#include "hone/cost/cost_model.h"

namespace hone::cost {

struct FingerprintQuery {
  std::string name;  // such as "conv2d on avx2"
  Query query;
};
// Returns two schedules of a matrix product, three of a convolution and one of softmax, on a
// machine with AVX-512 and on one with AVX2. They are always the same, whatever the host is.
// Changing one of them makes every trained file outdated.
[[nodiscard]] const std::vector<FingerprintQuery>& fingerprint_queries();
// Returns schedules for GPUs: two of a matrix product, one of a convolution and one of softmax, on
// a GPU of CUDA and on a small one of OpenCL.
[[nodiscard]] const std::vector<FingerprintQuery>& gpu_fingerprint_queries();

}  // namespace hone::cost
