// cost/lightgbm.h - trees fitted by LightGBM: the few functions of its C interface that boosting
// needs. Nothing of it is asked for when Hone is built; lib_lightgbm.so comes with the Python
// package (pip install lightgbm). It is the file that the environment variable HONE_LIGHTGBM
// names, else lib/hone/lib_lightgbm.so beside the program's folder, else what the loader finds.
#pragma once

#include "hone/cost/booster.h"

namespace hone::cost {

// Ok if the library can be used, else why not and what to install.
[[nodiscard]] Status lightgbm_status();
// Of the rows only the features are looked at.
[[nodiscard]] Result<std::unique_ptr<Booster>> make_lightgbm_booster(const TrainingRows& rows,
                                                                     const BoostOptions& options);

// The trees of a model's text (LGBM_BoosterSaveModelToString). Splits may name features below
// `num_features` only. What our trees cannot say is an error: categories, missing values, linear
// leaves.
[[nodiscard]] Result<Trees> parse_lightgbm(std::string_view text, int num_features);

}  // namespace hone::cost
