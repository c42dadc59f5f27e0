// session/cost_models.h - the one factory of cost models: by name, from a file of trees, or from a
// neural net in an ONNX file, which Hone compiles for its own search.
#pragma once

#include "hone/neural/neural_model.h"
#include "hone/session/model_tasks.h"

namespace hone {

// Returns a function that compiles a net, with this machine's default cost model, which is no net,
// and without a database: compiling a net must not need a net, and the same file always gives the
// same library.
[[nodiscard]] NetCompiler net_compiler();

[[nodiscard]] Result<std::unique_ptr<cost::CostModel>> make_cost_model(const CostOptions& options);
[[nodiscard]] Result<cost::ModelWithCard> make_cost_model_with_card(const CostOptions& options);

}  // namespace hone
