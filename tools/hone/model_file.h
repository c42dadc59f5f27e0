// tools/hone/model_file.h - MODEL of `run` and `bench`, a library or an ONNX model that is compiled
// first, and the inputs of a model. An error names the option that is wrong.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/open_model.h"

namespace hone::tool {

// Like open_model().
[[nodiscard]] Result<OpenedModel> open_file(const std::string& path, const CompileOptions& options);
// Like arrange_inputs(), of what --input gives.
[[nodiscard]] Result<std::vector<Tensor>> inputs_of(const std::vector<ModelTensor>& inputs,
                                                    std::map<std::string, Tensor> given,
                                                    uint64_t seed);

}  // namespace hone::tool
