// cost/pretrained.h - the trained models that ship with Hone (cost/pretrained/*.model, made by
// scripts/train_cost_models.sh), as text inside the program.
#pragma once

#include <span>
#include <string_view>

#include "hone/cost/candidate_features.h"

namespace hone::cost {

struct Pretrained {
  // The name for --cost: the kind of model and, for trees that learned from one processor design, a
  // dash and LLVM's name of it.
  std::string_view name;
  FeatureSet features;
  std::string_view text;
};
[[nodiscard]] std::span<const Pretrained> pretrained_models();

}  // namespace hone::cost
