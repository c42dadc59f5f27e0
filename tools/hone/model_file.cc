#include "model_file.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/base/status.h"

namespace hone::tool {

Result<OpenedModel> open_file(const std::string& path, const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const bool is_compiled, is_library(path));
  if (is_compiled) {
    if (!options.model.bind.empty())
      return invalid("--bind: {} is a library already; bind when compiling", path);
    if (options.target.accuracy != TargetOptions().accuracy)
      return invalid("--accuracy: {} is a library already; say it when compiling", path);
  }
  return open_model(path, options);
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
