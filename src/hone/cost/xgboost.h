// cost/xgboost.h - trees fitted by XGBoost: the few functions of its C interface that boosting
// needs.
#pragma once

#include "hone/cost/booster.h"

namespace hone::cost {

// Ok if the library can be used, else why not.
[[nodiscard]] Status xgboost_status();
// Of the rows only the features are looked at.
[[nodiscard]] Result<std::unique_ptr<Booster>> make_xgboost_booster(const TrainingRows& rows,
                                                                    const BoostOptions& options);

}  // namespace hone::cost
