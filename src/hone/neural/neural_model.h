// neural_model.h - cost models that are nets in files, beside those that cost/registry.h knows.
#pragma once

#include <memory>
#include <string>

#include "hone/cost/registry.h"
#include "hone/neural/compiled_net.h"

namespace hone {

// A name or file that cost::make_model() takes, or FILE.onnx: a net that `hone train` wrote. `db`:
// as in CompileOptions; what a net is compiled to is kept beside it, or nowhere if not `use_db`.
struct CostOptions {
  std::string cost = "analytic";
  std::string db;
  bool use_db = true;
  std::string adapt = "none";  // how a net learns from what is measured: net_adaptation.h
  std::string torch;           // cost::net::NetTraining::library
  cost::Use use = cost::Use::kSearch;
};
// As cost::make_model_with_card(). `compiler` makes the library of a FILE.onnx.
[[nodiscard]] Result<cost::ModelWithCard> make_cost_model_with_card(const CostOptions& options,
                                                                    const NetCompiler& compiler);

}  // namespace hone
