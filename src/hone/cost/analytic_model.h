// cost/analytic_model.h - the static measures of analysis/ as a cost model: nothing to train.
#pragma once

#include <memory>

#include "hone/cost/cost_model.h"

namespace hone::cost {

[[nodiscard]] std::unique_ptr<CostModel> make_analytic_model();

}  // namespace hone::cost
