#include "hone/cost_models.h"

#include "hone/cost/registry.h"

namespace hone {

std::vector<std::string> cost_model_names() { return cost::model_names(); }

bool is_cost_model_file(std::string_view cost) {
  return cost.ends_with(".onnx") || cost::is_model_file(cost);
}

}  // namespace hone
