// cost/analytic_model.h - the static measures of analysis/ as a cost model, which needs no
// training.
#pragma once

#include <memory>

#include "hone/cost/cost_model.h"

namespace hone::cost {

[[nodiscard]] std::unique_ptr<CostModel> make_analytic_model();

}  // namespace hone::cost
