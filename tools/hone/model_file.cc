#include "model_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hone/base/allocation.h"
#include "hone/base/input_file.h"
#include "hone/commands/check/random_inputs.h"
#include "hone/commands/tune.h"
#include "hone/graph/import_onnx.h"

#include "interrupt.h"

namespace hone::tool {

// Of the kinds of files, a shared library is one; a static one is an error that says what to do.
Result<bool> is_artifact(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const Descriptor file, open_input(path));
  char magic[8] = {};
  const ssize_t length = ::read(file.get(), magic, sizeof magic);
  if (length < 0) return error(Code::kIo, "cannot read '{}': {}", path, errno_text(errno));
  const std::string_view start(magic, static_cast<size_t>(length));
  if (start == "!<arch>\n")
    return invalid("{} is a static library, expected a shared one or an ONNX model", path);
  return start.starts_with(
      "\x7f"
      "ELF");
}

Result<ModelFile> open_model_file(const std::string& path, const ModelFileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const bool artifact, is_artifact(path));
  if (artifact) {
    HONE_ASSIGN_OR_RETURN(artifact::LoadedModel model, load(path, options.threads));
    if (!options.bind.empty())
      return invalid("--bind: {} is a library already; bind when compiling", path);
    if (options.accuracy != CompileOptions().accuracy)
      return invalid("--accuracy: {} is a library already; say it when compiling", path);
    return ModelFile{std::nullopt, std::move(model), {}, {path}};
  }
  CompileOptions compile_options;
  compile_options.interrupted = &listen_for_interrupt();  // before there is a folder to remove
  HONE_ASSIGN_OR_RETURN(TempDir folder, TempDir::create("hone-run"));
  compile_options.shapes = options.shapes;
  compile_options.bind = options.bind;
  compile_options.linked_data = options.linked_data;
  compile_options.accuracy = options.accuracy;
  compile_options.max_memory = options.max_memory;
  compile_options.available = options.available;
  compile_options.db = options.db;
  compile_options.threads = options.threads;
  compile_options.sync = false;
  const std::string library = folder.file("model.so");
  HONE_ASSIGN_OR_RETURN(const CompileSummary summary, compile(path, library, compile_options));
  HONE_ASSIGN_OR_RETURN(artifact::LoadedModel model, load(library, options.threads));
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> bound, graph::input_names(path));
  std::erase_if(bound, [&](const std::string& name) {
    return std::any_of(model.inputs().begin(), model.inputs().end(),
                       [&](const artifact::ModelTensor& input) { return input.name == name; });
  });
  return ModelFile{std::move(folder), std::move(model), std::move(bound), summary.files};
}

Result<std::vector<Tensor>> arrange_inputs(const std::vector<artifact::ModelTensor>& wanted,
                                           std::map<std::string, Tensor> given, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const artifact::ModelTensor& input = wanted[i];
    const auto it = given.find(input.name);
    if (it == given.end()) {
      const AllocatesFor purpose(fmt::format("input '{}'", input.name));
      tensors.push_back(random_input(input.dtype, input.shape, seed + i));
      continue;
    }
    const Tensor& tensor = it->second;
    if (tensor.dtype() != input.dtype || tensor.shape() != input.shape) {
      return invalid("input '{}': found {} {}, expected {} {}", input.name,
                     dtype_name(tensor.dtype()), to_string(tensor.shape()), dtype_name(input.dtype),
                     to_string(input.shape));
    }
    tensors.push_back(tensor);
    given.erase(it);
  }
  if (given.empty()) return tensors;
  std::vector<std::string> names;
  for (const artifact::ModelTensor& input : wanted) names.push_back(input.name);
  return invalid("--input: the model has no input '{}', expected one of: {}", given.begin()->first,
                 fmt::join(names, ", "));
}

}  // namespace hone::tool
