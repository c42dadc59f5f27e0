// runtime/run_steps.h - runs the steps of a model on the host, those of loops as often as these
// say.
#pragma once

#include "hone/runtime/model_state.h"

namespace hone::runtime {

// Runs all steps, or those that were chosen, each once. Arguments and sizes are in place. Returns
// 0, or what ended the run, with a message in Model::error.
int run_steps(Model& model);

}  // namespace hone::runtime
