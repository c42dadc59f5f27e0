// cost_models.h - the cost models that predict the times of kernels (AdvancedOptions::cost,
// SearchOptions::guide).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/export.h"

namespace hone {

// Returns the names of the cost models that come with Hone, without "auto".
[[nodiscard]] HONE_API std::vector<std::string> cost_model_names();
// Returns whether the text names a file with a trained model rather than one of those.
[[nodiscard]] HONE_API bool is_cost_model_file(std::string_view cost);

}  // namespace hone
