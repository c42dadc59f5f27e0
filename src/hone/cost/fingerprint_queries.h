// cost/fingerprint_queries.h - the schedules and machines of fingerprints (fingerprint.h).
#pragma once

#include <string>
#include <vector>

#include "hone/cost/cost_model.h"

namespace hone::cost {

struct FingerprintQuery {
  std::string name;  // "conv2d on avx2"
  Query query;
};
// Two schedules of a product of matrices, three of a convolution and one of softmax, on a machine
// with AVX-512 and on one with AVX2: always the same ones, whatever the host is. To change one of
// them makes every trained file an old one.
[[nodiscard]] const std::vector<FingerprintQuery>& fingerprint_queries();

}  // namespace hone::cost
