#include "model_file.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/base/status.h"

namespace hone::tool {
namespace {

// The shapes of a library are decided when it is compiled: those that are given must be these.
Status check_shapes(const std::string& path, const std::vector<ModelTensor>& inputs,
                    const std::map<std::string, Shape>& given) {
  for (const auto& [name, shape] : given) {
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const ModelTensor& own) { return own.name == name; });
    if (input == inputs.end()) return invalid("--shape: {} has no input '{}'", path, name);
    if (input->shape != shape) {
      return invalid("--shape: input '{}' of {} is {}, found {}; give shapes when compiling", name,
                     path, to_string(input->shape), to_string(shape));
    }
  }
  return ok_status();
}

}  // namespace

Result<OpenedModel> open_file(const std::string& path, const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const bool is_compiled, is_library(path));
  if (is_compiled) {
    if (!options.model.bind.empty())
      return invalid("--bind: {} is a library already; bind when compiling", path);
    if (options.target.accuracy != TargetOptions().accuracy)
      return invalid("--accuracy: {} is a library already; say it when compiling", path);
  }
  Result<OpenedModel> opened = open_model(path, options);
  if (is_compiled && opened.ok())
    HONE_RETURN_IF_ERROR(check_shapes(path, opened->model.inputs(), options.model.shapes));
  return opened;
}

Result<std::vector<Tensor>> inputs_of(const std::vector<ModelTensor>& inputs,
                                      std::map<std::string, Tensor> given, uint64_t seed) {
  std::vector<std::string> names;
  for (const ModelTensor& input : inputs) names.push_back(input.name);
  for (const auto& [name, tensor] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return invalid("--input: the model has no input '{}', expected one of: {}", name,
                     fmt::join(names, ", "));
  }
  return arrange_inputs(inputs, std::move(given), seed);
}

}  // namespace hone::tool
