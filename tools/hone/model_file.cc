#include "model_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hone/base/closest_name.h"
#include "hone/base/status.h"

namespace hone::tool {
namespace {

bool varies_only_with_symbols(const ModelTensor& input, const std::set<std::string>& symbols) {
  return !input.dims.empty() &&
         std::all_of(input.dims.begin(), input.dims.end(), [&](const std::string& dim) {
           return dim.empty() || symbols.contains(dim) ||
                  dim.find_first_of(" *(/") == std::string::npos;
         });
}

// Returns the names of inputs and of what decides their sizes.
std::vector<std::string> names_of(const std::vector<ModelTensor>& inputs) {
  std::vector<std::string> names;
  for (const ModelTensor& input : inputs) {
    names.push_back(input.name);
    for (const std::string& symbol : input.dims) {
      if (std::find(names.begin(), names.end(), symbol) == names.end()) names.push_back(symbol);
    }
  }
  return names;
}

// Adds the shapes of the inputs that have a symbol, such as `batch`, of these values. Inputs with
// sums of symbols follow by themselves.
Status add_sizes(const std::string& path, const std::vector<ModelTensor>& inputs,
                 const std::map<std::string, int64_t>& sizes, std::map<size_t, Shape>& shapes) {
  std::set<std::string> symbols, found;
  for (const auto& [name, value] : sizes) symbols.insert(name);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!varies_only_with_symbols(inputs[i], symbols)) continue;
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) {
      const auto size = sizes.find(inputs[i].dims[d]);
      if (size == sizes.end()) continue;
      found.insert(size->first);
      shapes.try_emplace(i, inputs[i].shape).first->second[d] = size->second;
    }
  }
  for (const std::string& name : symbols) {
    if (!found.contains(name))
      return invalid("--shape: {} has no input '{}', and no input that varies with it{}", path,
                     name, did_you_mean(name, names_of(inputs)));
  }
  return ok_status();
}

}  // namespace

Status by_option(std::string_view option, const Status& status) {
  return status.ok() ? status : error(status.code(), "{}: {}", option, status.message());
}

Status in_file(const std::string& path, const Status& status) {
  const std::string& message = status.message();
  const bool is_named = status.code() == Code::kCancelled || message.starts_with(path) ||
                        message.find(" " + path + ": ") != std::string::npos ||
                        message.find(" of " + path + " ") != std::string::npos;
  return status.ok() || is_named ? status : by_option(path, status);
}

Status set_shapes(const std::string& path, Model& model,
                  const std::map<std::string, Shape>& given) {
  const std::vector<ModelTensor>& inputs = model.inputs();
  std::map<size_t, Shape> shapes;
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, shape] : given) {
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const ModelTensor& own) { return own.name == name; });
    if (input == inputs.end() && shape.size() == 1) {
      sizes[name] = shape[0];
      continue;
    }
    if (input == inputs.end())
      return invalid("--shape: {} has no input '{}'{}", path, name,
                     did_you_mean(name, names_of(inputs)));
    if (input->dims.empty() && input->shape != shape) {
      return invalid("--shape: input '{}' of {} is {}, found {}; give shapes when compiling", name,
                     path, to_string(input->shape), to_string(shape));
    }
    shapes[static_cast<size_t>(input - inputs.begin())] = shape;
  }
  HONE_RETURN_IF_ERROR(add_sizes(path, inputs, sizes, shapes));
  const std::string option = "--shape: " + path;
  for (const auto& [i, shape] : shapes)
    HONE_RETURN_IF_ERROR(by_option(option, model.set_input_shape(static_cast<int>(i), shape)));
  return inputs.empty() ? ok_status() : by_option(option, model.input_shape(0).status());
}

Result<std::vector<ModelTensor>> tensors_of_run(const std::string& path, const Model& model) {
  std::vector<ModelTensor> tensors;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const ModelTensor& input = model.inputs()[i];
    Result<Shape> shape = model.input_shape(static_cast<int>(i));
    if (!shape.ok()) return in_file(path, shape.status());
    tensors.push_back({input.name, input.dtype, std::move(shape).value()});
  }
  return tensors;
}

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
    HONE_RETURN_IF_ERROR(set_shapes(path, opened->model, options.model.shapes));
  return opened;
}

Result<std::vector<Tensor>> inputs_of(const std::string& path,
                                      const std::vector<ModelTensor>& inputs,
                                      std::map<std::string, Tensor> given, uint64_t seed) {
  std::vector<std::string> names;
  for (const ModelTensor& input : inputs) names.push_back(input.name);
  for (const auto& [name, tensor] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return invalid(
          "--input: {}: the model has no input '{}', expected one of: {}; a library has those "
          "inputs with a default that were given a shape when it was compiled (--shape {}=...){}",
          path, name, fmt::join(names, ", "), name, did_you_mean(name, names));
  }
  Result<std::vector<Tensor>> arranged = arrange_inputs(inputs, std::move(given), seed);
  if (!arranged.ok()) return by_option("--input: " + path, arranged.status());
  return arranged;
}

}  // namespace hone::tool
