// cost/registry.h - the cost models by name (--cost).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hone/cost/cost_model.h"

namespace hone::cost {

// The error lists the known names.
[[nodiscard]] Result<std::unique_ptr<CostModel>> make_model(std::string_view name);
[[nodiscard]] std::vector<std::string> model_names();

}  // namespace hone::cost
