// artifact/loaded_model.h - a compiled model that this process has loaded, by its C interface.
#pragma once

#include <memory>
#include <string>

#include "hone/artifact/model_body.h"

namespace hone::artifact {

// Loads a library as Model::load() says. Errors call it `name`.
[[nodiscard]] Result<std::unique_ptr<ModelBody>> load_model(const std::string& path,
                                                            const LoadOptions& options,
                                                            const std::string& name);

}  // namespace hone::artifact
