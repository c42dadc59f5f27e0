// schedule/rfactor.h - the two stages that the step rfactor makes from a reduction.
#pragma once

#include <string>

#include "hone/base/status.h"
#include "hone/compute/dag.h"
#include "hone/schedule/step.h"

namespace hone::schedule {

// r = sum over k of f(k)  -->  r.rf[p] = sum over the k of part p of f(k);  r = sum over p of r.rf
struct Factored {
  compute::Stage part;
  compute::Stage merged;
};
[[nodiscard]] Result<Factored> factor_reduction(const compute::Stage& stage, const RFactor& step,
                                                std::string part_name);

}  // namespace hone::schedule
