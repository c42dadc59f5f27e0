#include "hone/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "hone/base/file.h"
#include "hone/base/temporary_name.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as in Linux' path resolution

Status cannot_write(const std::string& path, int error_number) {
  const Code code = error_number == ENOENT || error_number == ENOTDIR ? Code::kNotFound : Code::kIo;
  return error(code, "cannot write '{}': {}", path, errno_text(error_number));
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool write_all(int fd, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(fd, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Those of the file that is replaced. Only root may give a file away; what runs as its owner
// (set-user-ID) must not run as another one.
bool take_permissions(int fd, const struct stat& old) {
  const bool given = ::fchown(fd, old.st_uid, old.st_gid) == 0;
  return ::fchmod(fd, old.st_mode & (given ? 07777 : 0777)) == 0;
}

// So that the new name is on the disk, too; some file systems know no such thing.
bool sync_folder(const std::string& path) {
  const int fd = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return true;
  const bool synced = ::fsync(fd) == 0 || errno != EIO;
  ::close(fd);
  return synced;
}

// The file at `target`, and whether it may be replaced or written.
struct Found {
  bool exists = false, in_place = false;
  struct stat info = {};
};
Result<Found> look_at(const std::string& path, const std::string& target) {
  Found found;
  found.exists = ::stat(target.c_str(), &found.info) == 0;
  if (!found.exists && errno != ENOENT) return cannot_write(path, errno);
  if (!found.exists) return found;
  if (S_ISDIR(found.info.st_mode))
    return invalid("cannot write '{}': it is a directory, expected a file", path);
  found.in_place = !S_ISREG(found.info.st_mode);
  if (::access(target.c_str(), W_OK) != 0) return cannot_write(path, errno);
  return found;
}

Status copy_file(const std::string& from, const std::string& to, unsigned mode) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(from.c_str(), "re"),
                                                             &std::fclose);
  if (!file) return cannot_write(to, errno);
  HONE_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(to, mode));
  std::vector<char> buffer(1 << 20);
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    HONE_RETURN_IF_ERROR(output.write({buffer.data(), got}));
  if (std::ferror(file.get()) != 0) return cannot_write(to, EIO);
  return output.finish();
}

}  // namespace

std::string link_target(const std::string& path) {
  fs::path at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code failure;
    const fs::path next = fs::read_symlink(at, failure);
    // A link that only the system can follow (/proc/self/fd/1) leads to no name.
    if (failure || (fs::exists(at, failure) && !fs::exists(at.parent_path() / next, failure)))
      return at.string();
    at = at.parent_path() / next;
  }
  return at.string();
}

bool is_stream(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Status OutputFile::failure(int error_number) const { return cannot_write(path_, error_number); }

Result<OutputFile> OutputFile::create(const std::string& path, unsigned mode) {
  OutputFile file(path, link_target(path));
  HONE_ASSIGN_OR_RETURN(const Found found, look_at(path, file.target_));
  if (found.in_place) {
    file.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd_ < 0) return cannot_write(path, errno);
    return file;
  }
  const std::string folder = folder_of(file.target_);
  clear_stale_files(folder);
  for (int tries = 0; file.fd_ < 0; ++tries) {
    const std::string name = fmt::format("{}/{}", folder, temporary_name(""));
    file.fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file.fd_ < 0 && (errno != EEXIST || tries == kMostNames)) return cannot_write(path, errno);
    if (file.fd_ >= 0) file.partial_ = name;
  }
  (void)::flock(file.fd_, LOCK_EX | LOCK_NB);  // says that its owner lives
  if (found.exists && !take_permissions(file.fd_, found.info)) return cannot_write(path, errno);
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

Status OutputFile::write(std::string_view contents) {
  return write_all(fd_, contents) ? ok_status() : failure(errno);
}

Status OutputFile::finish() {
  const bool synced = partial_.empty() || ::fsync(fd_) == 0;
  int error_number = errno;
  // A late write error is said by close() alone.
  if (::close(std::exchange(fd_, -1)) != 0 && synced) return failure(errno);
  if (!synced) return failure(error_number);
  if (partial_.empty()) return ok_status();
  if (::rename(partial_.c_str(), target_.c_str()) != 0) return failure(errno);
  partial_.clear();
  return sync_folder(target_) ? ok_status() : failure(EIO);
}

Status publish_file(const std::string& from, const std::string& to, bool sync) {
  const std::string target = link_target(to);
  HONE_ASSIGN_OR_RETURN(const Found found, look_at(to, target));
  struct stat own;
  if (::stat(from.c_str(), &own) != 0) return cannot_write(to, errno);
  if (found.in_place) return copy_file(from, to, own.st_mode & 0777);
  const int fd = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cannot_write(to, errno);
  const bool ready =
      (!found.exists || take_permissions(fd, found.info)) && (!sync || ::fsync(fd) == 0);
  const int error_number = errno;
  ::close(fd);
  if (!ready) return cannot_write(to, error_number);
  if (::rename(from.c_str(), target.c_str()) == 0)
    return !sync || sync_folder(target) ? ok_status() : cannot_write(to, EIO);
  return errno == EXDEV ? copy_file(from, to, own.st_mode & 0777) : cannot_write(to, errno);
}

}  // namespace hone
