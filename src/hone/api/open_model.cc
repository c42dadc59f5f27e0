#include "hone/open_model.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "hone/artifact/loaded_model.h"
#include "hone/base/file.h"
#include "hone/base/input_file.h"
#include "hone/base/status.h"
#include "hone/compile.h"
#include "hone/graph/import_onnx.h"
#include "hone/remote/remote_model.h"

namespace hone {

Result<bool> is_library(const std::string& path) {
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

namespace {

// Errors call the library `name`, as its path may be that of a temporary file.
Result<Model> load_for(const TargetOptions& target, const std::string& library,
                       const std::string& name) {
  const LoadOptions options{target.threads, target.time_limit};
  std::unique_ptr<ModelBody> body;
  if (target.machine.empty()) {
    HONE_ASSIGN_OR_RETURN(body, artifact::load_model(library, options, name));
  } else {
    HONE_ASSIGN_OR_RETURN(remote::MachineAddress address, remote::parse_machine(target.machine));
    HONE_ASSIGN_OR_RETURN(body, remote::load_model(std::move(address), library, options, name));
  }
  return Model(std::move(body));
}

}  // namespace

Result<OpenedModel> open_model(const std::string& path, const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const bool is_compiled, is_library(path));
  if (is_compiled) {
    HONE_ASSIGN_OR_RETURN(Model model, load_for(options.target, path, path));
    if (!options.model.bind.empty())
      return invalid("{} is a library already: inputs are bound when it is compiled", path);
    if (options.target.accuracy != TargetOptions().accuracy)
      return invalid("{} is a library already: its accuracy is chosen when it is compiled", path);
    return OpenedModel{nullptr, std::move(model), {path}, {}};
  }
  Result<InputNames> inputs = graph::input_names(path);
  if (!inputs.ok() && inputs.status().code() != Code::kInvalid) return inputs.status();
  if (!inputs.ok())
    return error(inputs.status().code(), "{}; expected a library that Hone compiled, or a model",
                 inputs.status().message());
  HONE_ASSIGN_OR_RETURN(TempDir made, TempDir::create("hone-run"));
  const auto folder = std::make_shared<TempDir>(std::move(made));
  const std::string library = folder->file("model.so");
  if (options.target.device != TargetOptions().device)
    return invalid("device '{}' cannot run models here, expected host", options.target.device);
  CompileOptions quick = options;
  quick.library.static_library = quick.library.header = quick.library.sync = false;
  HONE_ASSIGN_OR_RETURN(const CompileSummary summary, compile(path, library, quick));
  HONE_ASSIGN_OR_RETURN(Model model, load_for(options.target, library, path));
  std::vector<std::string> bound = std::move(inputs->required);
  for (const auto& [name, unused] : options.model.available) {  // optional inputs are not in it
    if (std::find(bound.begin(), bound.end(), name) == bound.end()) bound.push_back(name);
  }
  std::erase_if(bound, [&](const std::string& name) {
    return std::any_of(model.inputs().begin(), model.inputs().end(),
                       [&](const ModelTensor& input) { return input.name == name; });
  });
  return OpenedModel{folder, std::move(model), summary.files, std::move(bound)};
}

Result<InputNames> input_names(const std::string& model) { return graph::input_names(model); }

}  // namespace hone
