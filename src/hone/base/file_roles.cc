#include "hone/base/file_roles.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "hone/base/output_file.h"

namespace hone {
namespace {

std::optional<FileIdentity> identity_of(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return std::nullopt;
  return FileIdentity{info.st_dev, info.st_ino, ""};
}

}  // namespace

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) return identity_of(info);
  const std::filesystem::path target = link_target(path);
  const std::string folder = target.parent_path().string();
  if (path.empty() || ::stat(folder.empty() ? "." : folder.c_str(), &info) != 0)
    return std::nullopt;
  return FileIdentity{info.st_dev, info.st_ino, target.filename().string()};
}

void FileRoles::read(std::string what, const std::string& path) {
  add(Use::kRead, std::move(what), path, identity_of(path));
}
void FileRoles::updated(std::string what, const std::string& path) {
  add(Use::kUpdated, std::move(what), path, identity_of(path));
}
void FileRoles::written(std::string what, const std::string& path) {
  add(Use::kWritten, std::move(what), path, identity_of(path));
}
void FileRoles::written(std::string what, int descriptor) {
  struct stat info;
  if (::fstat(descriptor, &info) == 0) add(Use::kWritten, what, what, identity_of(info));
}

void FileRoles::add(Use use, std::string what, const std::string& path,
                    std::optional<FileIdentity> identity) {
  if (identity) entries_.push_back({use, std::move(what), path, *std::move(identity)});
}

Status FileRoles::check() const {
  for (const Entry& output : entries_) {
    if (output.use == Use::kRead) continue;
    for (const Entry& other : entries_) {
      if (&other == &output || other.identity != output.identity) continue;
      if (output.use == Use::kUpdated && other.use != Use::kRead) continue;
      const char* const uses = other.use == Use::kRead      ? "reads"
                               : other.use == Use::kUpdated ? "reads and writes"
                                                            : "writes";
      return invalid("{}: '{}' is the same file as '{}', which {} {}; expected another file",
                     output.what, output.path, other.path, other.what, uses);
    }
  }
  return ok_status();
}

}  // namespace hone
