// tools/hone/model_file.h - MODEL of `run` and `bench`, a library or an ONNX model that is compiled
// first, and the inputs of a model. An error names the option that is wrong.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hone/open_model.h"

namespace hone::tool {

// Like open_model(). A library whose shapes vary gets those that --shape gives.
[[nodiscard]] Result<OpenedModel> open_file(const std::string& path, const CompileOptions& options);
// Returns an error that begins with the name of an option, or of the file that a run is of.
[[nodiscard]] Status by_option(std::string_view option, const Status& status);
[[nodiscard]] Status in_file(const std::string& path, const Status& status);

// Sets shapes of inputs, by their names; and, of one extent, the value of a symbol that inputs vary
// with, by its name (batch=4). Errors name --shape.
[[nodiscard]] Status set_shapes(const std::string& path, Model& model,
                                const std::map<std::string, Shape>& given);
// Returns the inputs with the shapes that they have in the next run of the model in a file.
[[nodiscard]] Result<std::vector<ModelTensor>> tensors_of_run(const std::string& path,
                                                              const Model& model);
// Like arrange_inputs(), of what --input gives for the model in a file.
[[nodiscard]] Result<std::vector<Tensor>> inputs_of(const std::string& path,
                                                    const std::vector<ModelTensor>& inputs,
                                                    std::map<std::string, Tensor> given,
                                                    uint64_t seed);

}  // namespace hone::tool
