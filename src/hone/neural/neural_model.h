// neural_model.h - cost models that are nets in files, beside those that cost/registry.h knows.
#pragma once

#include <memory>
#include <string>

#include "hone/cost/registry.h"
#include "hone/neural/compiled_net.h"

namespace hone {

// The choice of a cost model. `cost` is a name or file that cost::make_model() takes, or FILE.onnx,
// a net that `hone train` wrote. `db` is that of CompileOptions: compiled nets are kept beside it,
// or nowhere if `use_db` is false.
struct CostOptions {
  std::string cost = "analytic";
  std::string db;
  bool use_db = true;
  std::string adapt = "none";  // how a net learns from what is measured: net_adaptation.h
  std::string torch;           // cost::net::NetTraining::library
  cost::Use use = cost::Use::kSearch;
};
// Makes the model as cost::make_model_with_card() does. `compiler` makes the library of a
// FILE.onnx. For a search, kernels that a net cannot read are left to the default model
// (neural/backed_model.h).
[[nodiscard]] Result<cost::ModelWithCard> make_cost_model_with_card(const CostOptions& options,
                                                                    const NetCompiler& compiler);

}  // namespace hone
