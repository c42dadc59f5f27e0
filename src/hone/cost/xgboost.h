// cost/xgboost.h - fits trees by XGBoost through the few functions of its C interface that boosting
// needs.
#pragma once

#include "hone/cost/booster.h"

namespace hone::cost {

// Returns ok if the library can be used, else why not.
[[nodiscard]] Status xgboost_status();
// Makes a booster. It reads only the features of the rows.
[[nodiscard]] Result<std::unique_ptr<Booster>> make_xgboost_booster(const TrainingRows& rows,
                                                                    const BoostOptions& options);

}  // namespace hone::cost
