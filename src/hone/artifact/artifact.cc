#include "hone/artifact/artifact.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "hone/artifact/elf_object.h"
#include "hone/artifact/embedded_runtime.h"
#include "hone/artifact/image_object.h"
#include "hone/artifact/interface_names.h"
#include "hone/artifact/linker.h"
#include "hone/artifact/static_library.h"
#include "hone/artifact/weights_segment.h"
#include "hone/base/file.h"
#include "hone/base/output_file.h"
#include "hone/base/printable.h"

namespace hone::artifact {
namespace {

// Where a library for `target` is made: beside it, so that it needs only be renamed, or among the
// temporary files for a device or a pipe.
Result<TempDir> working_folder(const std::string& target) {
  std::filesystem::path parent = std::filesystem::path(link_target(target)).parent_path();
  if (parent.empty()) parent = ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(parent, ignored))
    return error(Code::kNotFound, "cannot write '{}': {}", target, errno_text(ENOENT));
  Result<TempDir> folder =
      TempDir::create("", is_stream(target) ? temporary_folder() : parent.string());
  if (folder.ok()) return folder;
  return error(Code::kIo, "cannot write {}: {}", target, folder.status().message());
}

Status write_file(const std::string& path, std::string_view bytes) {
  FILE* file = std::fopen(path.c_str(), "wb");
  const bool ok =
      file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (file == nullptr || std::fclose(file) != 0 || !ok)
    return error(Code::kIo, "cannot write {}: {}", path, errno_text(errno));
  return ok_status();
}

// Returns the machine that the kernels for CPUs are for; this one if there are none.
Result<Machine> check_objects(const ArtifactSpec& spec, Runtimes runtimes) {
  std::optional<Machine> found;
  for (const backend::Executable& executable : spec.executables) {
    if (executable.kind == target::Kind::kGpu) continue;
    HONE_ASSIGN_OR_RETURN(const Machine machine, object_machine(executable.code.str()));
    if (found.value_or(machine) != machine)
      return invalid("kernels for {} and {} cannot be in one library", machine_name(*found),
                     machine_name(machine));
    found = machine;
    if (runtimes(machine).archive.empty()) return no_runtime(machine);
  }
  const std::set<std::string> distinct(spec.kernel_symbols.begin(), spec.kernel_symbols.end());
  if (distinct.size() != spec.kernel_symbols.size())
    return invalid("a kernel is listed twice in an artifact");
  return found.value_or(host_machine());
}

// A name, which may hold anything, as text that neither ends a comment nor begins another.
std::string comment_text(const std::string& name) {
  std::string text;
  for (const char c : printable(name)) {
    const char before = text.empty() ? ' ' : text.back();
    if ((before == '*' && c == '/') || (before == '/' && c == '*')) text += ' ';
    text += c;
  }
  return text;
}

std::string describe_tensors(const char* what, const std::vector<ArtifactTensor>& tensors,
                             const ArtifactSpec& spec) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string dims;
    for (size_t d = 0; d < tensors[i].shape.size(); ++d) {
      const std::string name =
          tensors[i].dims.empty() ? "" : comment_text(dim_text(spec, tensors[i].dims[d]));
      dims += dims.empty() ? "" : ", ";
      dims += name.empty() ? std::to_string(tensors[i].shape[d]) : name;
    }
    text +=
        fmt::format(" *   {} {}: {} {}[{}]{}\n", what, i, comment_text(tensors[i].name),
                    dtype_name(tensors[i].dtype), dims,
                    tensors[i].actual_shape < 0 ? "" : " at most: ask output_shape after a run");
  }
  return text;
}

std::string describe_sizes(const ArtifactSpec& spec) {
  std::string text;
  for (const ArtifactSymbol& symbol : spec.symbols)
    text += fmt::format(" *   {}: {} to {}{}\n", comment_text(symbol.name),
                        symbol.min * symbol.step, symbol.max * symbol.step,
                        symbol.step == 1 ? "" : fmt::format(", a multiple of {}", symbol.step));
  return text;
}

// The files in `folder` that an artifact is linked from; their names there.
Result<std::vector<std::string>> write_link_inputs(const ArtifactSpec& spec,
                                                   const std::string& plan,
                                                   const ImageOptions& options,
                                                   const MachineRuntime& runtime,
                                                   const TempDir& folder) {
  std::vector<std::string> inputs = {"image.o"};
  HONE_RETURN_IF_ERROR(write_image_object(spec, plan, options, folder.file(inputs[0])));
  for (size_t i = 0; i < spec.executables.size(); ++i) {
    if (spec.executables[i].kind == target::Kind::kGpu) continue;
    inputs.push_back(fmt::format("kernels_{}.o", i));
    HONE_RETURN_IF_ERROR(write_file(folder.file(inputs.back()), spec.executables[i].code.str()));
  }
  inputs.push_back("libhone_runtime.a");
  HONE_RETURN_IF_ERROR(write_file(folder.file(inputs.back()), runtime.archive));
  if (!options.shared) return inputs;
  inputs.push_back("weights.o");
  HONE_RETURN_IF_ERROR(write_weights_object(spec, options.machine, folder.file(inputs.back())));
  return inputs;
}

std::vector<std::string> exported_names(const ArtifactSpec& spec) {
  std::vector<std::string> names;
  for (const std::string& function : interface_functions())
    names.push_back(exported_name(function, spec.prefix));
  return names;
}

std::vector<std::string> host_kernels(const ArtifactSpec& spec) {
  const std::vector<KernelPlace> places = kernel_places(spec);
  std::vector<std::string> symbols;
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].entry == nullptr) symbols.push_back(spec.kernel_symbols[i]);
  return symbols;
}

// Writes the stubs of another machine's libraries into the folder and returns their names.
Result<std::vector<std::string>> write_stubs(const MachineRuntime& runtime, const TempDir& folder) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] :
       {std::pair{"libc.so.6", runtime.libc}, std::pair{"libm.so.6", runtime.libm}}) {
    if (bytes.empty()) continue;
    HONE_RETURN_IF_ERROR(write_file(folder.file(name), bytes));
    names.emplace_back(name);
  }
  return names;
}

// Links the inputs in the folder to the file `output` there.
Status link_shared(const ArtifactSpec& spec, const MachineRuntime& runtime,
                   const std::string& linker, const TempDir& folder,
                   const std::vector<std::string>& inputs, const std::string& output) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> libraries, write_stubs(runtime, folder));
  HONE_RETURN_IF_ERROR(
      link_shared_library(linker, folder.path(), inputs, libraries, exported_names(spec), output));
  const Status appended = append_weights(spec, folder.file(output));
  if (appended.code() != Code::kInternal) return appended;
  return error(Code::kInternal, "{} ({})", appended.message(), linker);
}

Status link_static(const ArtifactSpec& spec, const MachineRuntime&, const std::string& linker,
                   const TempDir& folder, const std::vector<std::string>& inputs,
                   const std::string& output) {
  const std::string object = folder.file("model.o");
  HONE_RETURN_IF_ERROR(link_object(linker, folder.path(), inputs, "model.o"));
  std::filesystem::remove(folder.file(inputs[0]));  // the weights are on the disk twice now
  const std::vector<std::string> exports = exported_names(spec);
  HONE_RETURN_IF_ERROR(localize_symbols(object, exports, host_kernels(spec)));
  return write_archive(object, exports, folder.file(output));
}

Status write_library(const ArtifactSpec& spec, const std::string& path,
                     const ArtifactOptions& options, bool is_static) {
  HONE_RETURN_IF_ERROR(check_prefix(spec.prefix));
  HONE_ASSIGN_OR_RETURN(const Machine machine, check_objects(spec, options.runtimes));
  const MachineRuntime runtime = options.runtimes(machine);
  HONE_ASSIGN_OR_RETURN(const std::string plan, encode_plan(spec));
  HONE_ASSIGN_OR_RETURN(const std::string linker, find_linker(options.linker, machine));
  HONE_ASSIGN_OR_RETURN(const TempDir folder, working_folder(path));
  const ImageOptions image = {machine, !is_static, options.near_weights};
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                        write_link_inputs(spec, plan, image, runtime, folder));
  const auto link = is_static ? link_static : link_shared;
  HONE_RETURN_IF_ERROR(link(spec, runtime, linker, folder, inputs, "library"));
  if (options.before_publishing)
    HONE_RETURN_IF_ERROR(options.before_publishing(folder.file("library")));
  return publish_file(folder.file("library"), path, options.sync);
}

}  // namespace

std::string header_text(const ArtifactSpec& spec) {
  return fmt::format("/* {}: compiled by Hone.\n{}{}{} */\n{}",
                     spec.name.empty() ? "A model" : comment_text(spec.name),
                     describe_tensors("input", spec.inputs, spec),
                     describe_tensors("output", spec.outputs, spec), describe_sizes(spec),
                     interface_text(spec.prefix));
}

Status write_header(const ArtifactSpec& spec, const std::string& path) {
  HONE_RETURN_IF_ERROR(check_prefix(spec.prefix));
  return write_file_atomic(path, header_text(spec));
}

Status write_shared_library(const ArtifactSpec& spec, const std::string& path,
                            const ArtifactOptions& options) {
  return write_library(spec, path, options, false);
}

Status write_static_library(const ArtifactSpec& spec, const std::string& path,
                            const ArtifactOptions& options) {
  return write_library(spec, path, options, true);
}

}  // namespace hone::artifact
