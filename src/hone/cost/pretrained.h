// cost/pretrained.h - the trained models that ship with Hone (cost/pretrained/*.model, made by
// scripts/train_cost_models.sh), as text inside the program.
#pragma once

#include <string_view>

#include "hone/cost/candidate_features.h"

namespace hone::cost {

[[nodiscard]] std::string_view pretrained_text(FeatureSet features);

}  // namespace hone::cost
