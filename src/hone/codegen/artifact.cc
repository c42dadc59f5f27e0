#include "hone/codegen/artifact.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "hone/codegen/elf_object.h"
#include "hone/codegen/embedded_runtime.h"
#include "hone/codegen/linker.h"
#include "hone/codegen/runtime/hone_model.h"

namespace hone::codegen {
namespace {

constexpr const char* kOwnPrefix = "hone_model";
constexpr const char* kOwnVersion = "hone_abi_version";
constexpr const char* kNoteOwner = "Hone";  // loaded_model.cc looks for it
// The linker holds one input section at a time in memory.
constexpr int64_t kWeightChunk = 16 << 20;
constexpr int64_t kWeightAlignment = 4096;
constexpr int64_t kNearWeights = int64_t{1} << 30;  // x86-64's code reaches 2 GiB

// A folder beside the target, removed with everything in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> beside(const std::string& target) {
    std::filesystem::path parent = std::filesystem::path(target).parent_path();
    if (parent.empty()) parent = ".";
    std::string name = (parent / ".hone-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      return error(Code::kIo, "cannot write {}: {}", target, std::strerror(errno));
    return TemporaryFolder(name);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status write_file(const std::string& path, std::string_view bytes) {
  FILE* file = std::fopen(path.c_str(), "wb");
  const bool ok =
      file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (file == nullptr || std::fclose(file) != 0 || !ok)
    return error(Code::kIo, "cannot write {}: {}", path, std::strerror(errno));
  return ok_status();
}

Status publish(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return error(Code::kIo, "cannot write {}: {}", to, std::strerror(errno));
  return ok_status();
}

bool is_identifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (static_cast<unsigned char>(c) < 128 && std::isalnum(c) != 0);
  });
}

Status check_prefix(const std::string& prefix) {
  if (is_identifier(prefix)) return ok_status();
  return invalid("found prefix '{}', expected a C identifier", prefix);
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// The functions of the C interface, in the header's order: the only place that lists them.
std::vector<std::string> interface_functions() {
  const std::string text(runtime_header_text());
  std::vector<std::string> names;
  for (size_t at = text.find("hone_"); at != std::string::npos; at = text.find("hone_", at + 1)) {
    size_t end = at;
    while (end < text.size() && is_identifier(text.substr(at, end + 1 - at))) ++end;
    const std::string name = text.substr(at, end - at);
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (end < text.size() && text[end] == '(' && !known) names.push_back(name);
  }
  return names;
}

std::string exported_name(const std::string& function, const std::string& prefix) {
  if (prefix == kOwnPrefix) return function;
  if (function == kOwnVersion) return prefix + "_abi_version";
  return prefix + function.substr(std::strlen(kOwnPrefix));
}

// The note that tells an artifact from any other shared library: "<abi version> <prefix>".
std::string note_bytes(const std::string& prefix) {
  const std::string owner = std::string(kNoteOwner) + '\0';
  const std::string text = fmt::format("{} {}", HONE_ABI_VERSION, prefix);
  Elf64_Nhdr header = {};
  header.n_namesz = static_cast<uint32_t>(owner.size());
  header.n_descsz = static_cast<uint32_t>(text.size());
  header.n_type = 1;
  const auto padded = [](std::string bytes) {
    bytes.resize((bytes.size() + 3) / 4 * 4);
    return bytes;
  };
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + padded(owner) +
         padded(text);
}

// Cuts the weights, with the zeros between them, into sections of kWeightChunk.
std::vector<ElfSection> weight_sections(const ArtifactSpec& spec, Machine machine) {
  static const char zeros[runtime::kBufferAlignment] = {};
  ElfSection empty;
  // ".lrodata" is x86-64's name for data that may lie out of reach of the code. GNU ld puts it into
  // a writable segment, so it is for those that need it.
  const bool far = machine == Machine::kX86_64 && weight_offsets(spec).back() > kNearWeights;
  empty.name = far ? ".lrodata" : ".hone_weights";
  empty.alignment = kWeightAlignment;
  std::vector<ElfSection> sections = {empty};
  int64_t used = 0;
  const auto append = [&](const char* data, int64_t size) {
    while (size > 0) {
      if (used == kWeightChunk) {
        sections.push_back(empty);
        used = 0;
      }
      const int64_t now = std::min(size, kWeightChunk - used);
      sections.back().contents.push_back({data, now});
      data += now;
      size -= now;
      used += now;
    }
  };
  for (const ArtifactWeight& weight : spec.weights) {
    append(static_cast<const char*>(weight.data), weight.bytes);
    const int64_t rest = weight.bytes % runtime::kBufferAlignment;
    if (rest != 0) append(zeros, runtime::kBufferAlignment - rest);
  }
  return sections;
}

// The object that names the plan, the kernels and the weights to the runtime, and that renames the
// interface, by one branch per function, if the prefix is not the runtime's own.
Status write_image_object(const ArtifactSpec& spec, const std::string& plan, Machine machine,
                          const std::string& path) {
  const std::string note = note_bytes(spec.prefix);
  const size_t num_kernels = spec.kernel_symbols.size();
  const std::string pointers((num_kernels + 1) * 8, '\0');
  const std::string branch = branch_instruction(machine);
  ElfObject object;
  object.machine = machine;
  enum { kPlan, kTable, kBranches, kNote, kWeights };
  object.sections.push_back(
      {".rodata", ElfSection::kReadOnly, 64, {{plan.data(), std::ssize(plan)}}, {}});
  object.sections.push_back({".data.rel.ro",
                             ElfSection::kRelocatedData,
                             8,
                             {{pointers.data(), std::ssize(pointers)}},
                             {}});
  object.sections.push_back({".text", ElfSection::kCode, 16, {}, {}});
  object.sections.push_back(
      {".note.hone", ElfSection::kNote, 4, {{note.data(), std::ssize(note)}}, {}});
  for (ElfSection& section : weight_sections(spec, machine))
    object.sections.push_back(std::move(section));

  const auto add_symbol = [&](ElfSymbol symbol) {
    object.symbols.push_back(std::move(symbol));
    return static_cast<int>(object.symbols.size()) - 1;
  };
  add_symbol({"hone_artifact_plan", kPlan, 0, std::ssize(plan), false, true});
  const int64_t table_bytes = static_cast<int64_t>(num_kernels) * 8;
  add_symbol({"hone_artifact_kernels", kTable, 0, table_bytes, false, true});
  add_symbol({"hone_artifact_weights", kTable, table_bytes, 8, false, true});
  const int weights = add_symbol({"hone_artifact_weight_data", kWeights, 0, 0, false, true});
  ElfSection& table = object.sections[kTable];
  for (size_t i = 0; i < num_kernels; ++i) {
    const int kernel = add_symbol({spec.kernel_symbols[i]});
    table.relocations.push_back({ElfRelocation::kPointer, static_cast<int64_t>(i) * 8, kernel, 0});
  }
  table.relocations.push_back({ElfRelocation::kPointer, table_bytes, weights, 0});
  ElfSection& code = object.sections[kBranches];
  int64_t place = 0;
  for (const std::string& function : interface_functions()) {
    const int target = add_symbol({function});  // also draws it from the runtime's library
    if (spec.prefix == kOwnPrefix) continue;
    code.contents.push_back({branch.data(), std::ssize(branch)});
    code.relocations.push_back({ElfRelocation::kBranch, place, target, 0});
    add_symbol(
        {exported_name(function, spec.prefix), kBranches, place, std::ssize(branch), true, false});
    place += std::ssize(branch);
  }
  return write_elf_object(object, path);
}

Status check_objects(const ArtifactSpec& spec) {
  for (const std::string& object : spec.objects) {
    HONE_ASSIGN_OR_RETURN(const Machine machine, object_machine(object));
    if (machine != host_machine())
      return error(Code::kUnsupported,
                   "kernels for {} cannot be linked on {}, which has its runtime only",
                   machine_name(machine), machine_name(host_machine()));
  }
  const std::set<std::string> distinct(spec.kernel_symbols.begin(), spec.kernel_symbols.end());
  if (distinct.size() != spec.kernel_symbols.size())
    return invalid("a kernel is listed twice in an artifact");
  return ok_status();
}

// Text that cannot end a comment.
std::string comment_text(const std::string& text) {
  std::string clean;
  for (const char c : text) clean += static_cast<unsigned char>(c) < 32 ? '?' : c;
  return replace_all(clean, "*/", "* /");
}

std::string describe_tensors(const char* what, const std::vector<ArtifactTensor>& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::string dims;
    for (const int64_t dim : tensors[i].shape)
      dims += fmt::format("{}{}", dims.empty() ? "" : ", ", dim);
    text +=
        fmt::format(" *   {} {}: {} {}[{}]{}\n", what, i, comment_text(tensors[i].name),
                    dtype_name(tensors[i].dtype), dims,
                    tensors[i].actual_shape < 0 ? "" : " at most: ask output_shape after a run");
  }
  return text;
}

}  // namespace

std::string header_text(const ArtifactSpec& spec) {
  std::string text(runtime_header_text());
  text.erase(0, text.find("#ifndef"));  // the comment of the runtime's own
  if (spec.prefix != kOwnPrefix) {
    std::string guard = spec.prefix + "_H_";
    for (char& c : guard) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    text = replace_all(std::move(text), "HONE_MODEL_H_", guard);
    text = replace_all(std::move(text), kOwnVersion, "\x01");
    text = replace_all(std::move(text), kOwnPrefix, spec.prefix);
    text = replace_all(std::move(text), "\x01", spec.prefix + "_abi_version");
  }
  return fmt::format("/* {}: compiled by Hone.\n{}{} */\n{}",
                     spec.name.empty() ? "A model" : comment_text(spec.name),
                     describe_tensors("input", spec.inputs),
                     describe_tensors("output", spec.outputs), text);
}

Status write_header(const ArtifactSpec& spec, const std::string& path) {
  HONE_RETURN_IF_ERROR(check_prefix(spec.prefix));
  HONE_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::beside(path));
  HONE_RETURN_IF_ERROR(write_file(folder.file("header.h"), header_text(spec)));
  return publish(folder.file("header.h"), path);
}

Status write_shared_library(const ArtifactSpec& spec, const std::string& path,
                            const ArtifactOptions& options) {
  HONE_RETURN_IF_ERROR(check_prefix(spec.prefix));
  HONE_RETURN_IF_ERROR(check_objects(spec));
  HONE_ASSIGN_OR_RETURN(const std::string plan, encode_plan(spec));
  HONE_ASSIGN_OR_RETURN(const std::string linker, find_linker(options.linker));
  HONE_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::beside(path));
  std::vector<std::string> inputs = {"image.o"};
  HONE_RETURN_IF_ERROR(write_image_object(spec, plan, host_machine(), folder.file(inputs[0])));
  for (size_t i = 0; i < spec.objects.size(); ++i) {
    inputs.push_back(fmt::format("kernels_{}.o", i));
    HONE_RETURN_IF_ERROR(write_file(folder.file(inputs.back()), spec.objects[i]));
  }
  inputs.push_back("libhone_runtime.a");
  HONE_RETURN_IF_ERROR(write_file(folder.file(inputs.back()), runtime_archive()));
  std::vector<std::string> exports;
  for (const std::string& function : interface_functions())
    exports.push_back(exported_name(function, spec.prefix));
  HONE_RETURN_IF_ERROR(link_shared_library(linker, folder.path(), inputs, exports, "model.so"));
  return publish(folder.file("model.so"), path);
}

}  // namespace hone::codegen
