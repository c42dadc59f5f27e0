#include "hone/resolve_options.h"

#include "hone/cost/registry.h"
#include "hone/neural/neural_model.h"
#include "hone/target/target.h"

namespace hone {
namespace {

Result<CostModelPtr> make(const std::string& name, const std::string& adapt,
                          const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<cost::CostModel> model,
                        make_cost_model({name, options.db, options.use_db, adapt, ""}));
  return CostModelPtr(std::move(model));
}

Result<std::string> model_name(const std::string& name, const CompileOptions& options) {
  if (name != cost::kAutoModel) return name;
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(options.device));
  return cost::default_model(target);
}

}  // namespace

Result<CostModelPtr> resolve_options(const CompileOptions& options) {
  HONE_RETURN_IF_ERROR(check_options(options));
  HONE_ASSIGN_OR_RETURN(const std::string name, model_name(options.cost, options));
  return make(name, "none", options);
}

Result<TuneModels> resolve_options(const TuneOptions& options) {
  const CompileOptions& compile = options.compile;
  HONE_RETURN_IF_ERROR(check_options(compile));
  HONE_ASSIGN_OR_RETURN(const std::string cost, model_name(compile.cost, compile));
  HONE_ASSIGN_OR_RETURN(const std::string guide,
                        model_name(options.guide.empty() ? cost : options.guide, compile));
  TuneModels models;
  HONE_ASSIGN_OR_RETURN(models.guide, make(guide, options.adapt, compile));
  models.cost = models.guide;
  if (cost != guide) {
    HONE_ASSIGN_OR_RETURN(models.cost, make(cost, "none", compile));
  }
  return models;
}

}  // namespace hone
