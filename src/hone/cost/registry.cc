#include "hone/cost/registry.h"

#include <fmt/ranges.h>

#include "hone/cost/analytic_model.h"

namespace hone::cost {

Result<std::unique_ptr<CostModel>> make_model(std::string_view name) {
  if (name == "analytic") return make_analytic_model();
  return invalid("unknown cost model '{}', expected one of {}", name,
                 fmt::join(model_names(), ", "));
}

std::vector<std::string> model_names() { return {"analytic"}; }

}  // namespace hone::cost
