// neural/backed_model.h - a cost model that cannot judge every kernel, backed by the default model,
// which guides the kernels that it cannot judge. A net that reads graphs in a template is one: a
// program may have more loops than the template.
#pragma once

#include <memory>
#include <string>

#include "hone/cost/cost_model.h"

namespace hone {

// Makes a model that asks `model`. A task for which that answers with Code::kUnsupported is left to
// the default model of its target (cost::default_model) from then on; one warning names the kernel
// and says why. revision() changes then. `name` is the name of the model in warnings.
[[nodiscard]] std::unique_ptr<cost::CostModel> make_backed_model(
    std::unique_ptr<cost::CostModel> model, std::string name);

}  // namespace hone
