// open_model.h - opens a model to run it, whether it is compiled or not, and makes inputs for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hone/export.h"
#include "hone/model.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/tensor.h"

namespace hone {

// A model that was opened from a library or an ONNX file.
struct OpenedModel {
  std::shared_ptr<void> folder;  // of the library made from an ONNX model; goes away with this
  Model model;
  std::set<std::string> files;  // files that it was read from
  // Inputs of the ONNX model that the library has no more: those that were bound.
  std::vector<std::string> bound;
};

// Returns whether the file begins like a compiled model. A static library, which cannot be loaded,
// is an error.
[[nodiscard]] HONE_API Result<bool> is_library(const std::string& path);
// Opens a compiled model, or compiles an ONNX model into a folder that goes away with the result.
// The device must be "host". For a library, it is an error to give inputs to bind or an accuracy,
// as these are decided when it is compiled.
[[nodiscard]] HONE_API Result<OpenedModel> open_model(const std::string& path,
                                                      const CompileOptions& options = {});

// The names of the inputs of an ONNX model, in its order: those without a default, which is an
// initializer of the same name, and those with one.
struct InputNames {
  std::vector<std::string> required, with_default;
};
[[nodiscard]] HONE_API Result<InputNames> input_names(const std::string& model);
// Returns values for all inputs in their order: those given by name, whose types and shapes are
// checked, and random ones for the others. A name that is no input is an error.
[[nodiscard]] HONE_API Result<std::vector<Tensor>> arrange_inputs(
    const std::vector<ModelTensor>& inputs, std::map<std::string, Tensor> given, uint64_t seed);

}  // namespace hone
