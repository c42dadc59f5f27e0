// cost/lightgbm.h - fits trees by LightGBM through the few functions of its C interface that
// boosting needs. Building Hone needs nothing of it; lib_lightgbm.so comes with the Python package
// (pip install lightgbm). The library is the file that the environment variable HONE_LIGHTGBM
// names, else lib/hone/lib_lightgbm.so next to the program's folder, else what the loader finds.
#pragma once

#include "hone/cost/booster.h"

namespace hone::cost {

// Returns ok if the library can be used, else why not and what to install.
[[nodiscard]] Status lightgbm_status();
// Makes a booster. It reads only the features of the rows.
[[nodiscard]] Result<std::unique_ptr<Booster>> make_lightgbm_booster(const TrainingRows& rows,
                                                                     const BoostOptions& options);

// Parses the trees of a model's text (LGBM_BoosterSaveModelToString). Splits may use only features
// below `num_features`. Categories, missing values and linear leaves, which our trees do not have,
// are errors.
[[nodiscard]] Result<Trees> parse_lightgbm(std::string_view text, int num_features);

}  // namespace hone::cost
