#include "hone/neural/compiled_net.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "hone/base/hash.h"
#include "hone/base/log.h"
#include "hone/graph/import_onnx.h"
#include "hone/machine/local.h"
#include "hone/neural/check_library.h"
#include "hone/neural/restored_net.h"
#include "hone/runtime/hone_model.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "hone-net-", kSuffix = ".so";
constexpr size_t kKept = 16;                     // libraries of a folder, however old
constexpr auto kUnused = std::chrono::days(30);  // after which others go

// Of all that the library depends on.
std::string library_name(const NetFile& net) {
  const std::string device = target::device_key(machine::local().target());
  const std::string text =
      fmt::format("{} {} {} {}", kScheduleVersion, HONE_ABI_VERSION, kNetBatch, device);
  return fmt::format("{}{}{}", kPrefix, hash_hex(hash_string(net.bytes, hash_string(text))),
                     kSuffix);
}

bool is_library_name(std::string_view name) {
  return name.size() == kPrefix.size() + hash_hex(0).size() + kSuffix.size() &&
         name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

std::string checksum_file(const std::string& library) { return library + ".sum"; }

std::string checksum_of(std::string_view library) { return hash_hex(hash_string(library)); }

// Whether nobody else can change it: code of others is not run.
bool is_private(const struct stat& info) {
  return info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_private_folder(const std::string& folder) {
  struct stat info = {};
  return ::stat(folder.c_str(), &info) == 0 && is_private(info);
}

Status not_private(const std::string& folder) {
  return invalid("others may write to the folder {}, expected one of this user only", folder);
}

// What the loader is told.
std::string loaded_name(const Descriptor& file) {
  return fmt::format("/proc/self/fd/{}", file.get());
}

// A kept library that is whole and that nobody else can have written, open. It is loaded by what is
// open here, not by its name, which could lead to another file by then.
std::optional<Descriptor> open_sound(const std::string& folder, const std::string& path) {
  if (!is_private_folder(folder)) return std::nullopt;
  struct stat info = {};
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) || !is_private(info)) return std::nullopt;
  const Result<std::string> library = read_file(loaded_name(file)),
                            checksum = read_file(checksum_file(path));
  const bool sound = library.ok() && checksum.ok() && *checksum == checksum_of(*library);
  return sound ? std::optional(std::move(file)) : std::nullopt;
}

// One that was not sound is removed before: its permissions are not to be those of the new one.
Status keep(const std::string& from, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string library, read_file(from));
  std::error_code ignored;
  fs::remove(path, ignored);
  HONE_RETURN_IF_ERROR(write_file_atomic(path, library, 0600));
  return write_file_atomic(checksum_file(path), checksum_of(library), 0600);
}

// The time of its checksum says when a library was used last.
void mark_used(const std::string& path) {
  std::error_code ignored;  // in a folder that cannot be written nothing is removed
  fs::last_write_time(checksum_file(path), fs::file_time_type::clock::now(), ignored);
}

// Of the folder's libraries those that nobody has used for long; one that a process has loaded
// stays whole in its memory.
void remove_unused(const std::string& folder) {
  struct Library {
    fs::file_time_type used;
    std::string path;
  };
  std::vector<Library> libraries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    if (!is_library_name(it->path().filename().string())) continue;
    std::error_code unknown;
    fs::file_time_type used = fs::last_write_time(checksum_file(path), unknown);
    if (unknown) used = fs::last_write_time(path, unknown);
    if (!unknown) libraries.push_back({used, path});
  }
  if (libraries.size() <= kKept) return;
  std::sort(libraries.begin(), libraries.end(),
            [](const Library& a, const Library& b) { return a.used > b.used; });
  const fs::file_time_type oldest = fs::file_time_type::clock::now() - kUnused;
  for (size_t i = kKept; i < libraries.size(); ++i) {
    if (libraries[i].used > oldest) continue;
    fs::remove(libraries[i].path, error);
    fs::remove(checksum_file(libraries[i].path), error);
  }
}

Status make_library(const NetFile& net, const std::string& name, const std::string& path,
                    const NetCompiler& compiler) {
  graph::ImportOptions import;
  for (const cost::Input input : net.inputs) {
    const cost::InputShape& shape = cost::input_shapes()[static_cast<size_t>(input)];
    import.shapes[shape.name] = shape.of(kNetBatch);
  }
  HONE_ASSIGN_OR_RETURN(
      graph::Graph graph,
      graph::import_onnx_bytes(net.bytes.data(), net.bytes.size(), name, "", import));
  return compiler(std::move(graph), path);
}

}  // namespace

Result<CompiledNet> compile_net(const NetFile& net, const std::string& name,
                                const std::string& folder, const NetCompiler& compiler) {
  CompiledNet compiled;
  const std::string library = library_name(net);
  const std::string kept = folder.empty() ? "" : (fs::path(folder) / library).string();
  const auto take_kept = [&] {
    std::optional<Descriptor> file = open_sound(folder, kept);
    if (!file) return false;
    compiled.path = loaded_name(*file);
    compiled.file = *std::move(file);
    return true;
  };
  if (!folder.empty() && take_kept()) {
    mark_used(kept);
    return compiled;
  }
  HONE_ASSIGN_OR_RETURN(TempDir temporary, TempDir::create());
  const std::string made = temporary.file(library);
  log_info("compiling the cost model {}", name);
  HONE_RETURN_IF_ERROR(make_library(net, name, made, compiler));
  // A file that this program would make otherwise, or whose weights are inputs, is not computed.
  if (const Result<cost::net::Net> plain = restore_net(net, name); plain.ok())
    HONE_RETURN_IF_ERROR(check_library(made, *plain));
  if (!folder.empty()) {
    const Status status = is_private_folder(folder) ? keep(made, kept) : not_private(folder);
    if (!status.ok()) {
      log_warning("the compiled cost model is not kept: {}", status.message());
    } else if (take_kept()) {
      remove_unused(folder);
      return compiled;
    }
  }
  compiled.path = made;
  compiled.temporary = std::move(temporary);
  return compiled;
}

}  // namespace hone
