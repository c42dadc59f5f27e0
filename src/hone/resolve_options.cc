#include "hone/resolve_options.h"

#include "hone/cost/registry.h"
#include "hone/neural/neural_model.h"
#include "hone/target/target.h"

namespace hone {

Result<CostModelPtr> resolve_options(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(check_options(options));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(options.device));
  const std::string name =
      options.cost == cost::kAutoModel ? cost::default_model(target) : options.cost;
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost::CostModel> cost,
                        make_cost_model({name, options.db, options.use_db, options.adapt, ""}));
  return CostModelPtr(std::move(cost));
}

}  // namespace hone
