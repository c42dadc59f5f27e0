// remote/remote_model.h - a compiled model that runs on a machine elsewhere: its library and its
// inputs are sent there once, by their hash, outputs come back, and times are those of that
// machine.
#pragma once

#include <memory>
#include <string>

#include "hone/artifact/model_body.h"
#include "hone/remote/machine_file.h"

namespace hone::remote {

// Loads the library on the machine. Errors about the library are those of Model::load(), and call
// it `name`.
[[nodiscard]] Result<std::unique_ptr<ModelBody>> load_model(MachineAddress address,
                                                            const std::string& library,
                                                            const LoadOptions& options,
                                                            const std::string& name);

}  // namespace hone::remote
