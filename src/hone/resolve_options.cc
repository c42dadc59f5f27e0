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

Result<CostModelPtr> resolve_guide(const TuneOptions& options, const CostModelPtr& cost) {
  const CompileOptions& compile = options.compile;
  HONE_ASSIGN_OR_RETURN(const std::string known, model_name(compile.cost, compile));
  HONE_ASSIGN_OR_RETURN(const std::string name,
                        model_name(options.guide.empty() ? known : options.guide, compile));
  if (name == known && options.adapt == "none") return cost;
  return make(name, options.adapt, compile);
}

}  // namespace hone
