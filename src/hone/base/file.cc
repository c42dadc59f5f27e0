#include "hone/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "hone/base/allocation.h"
#include "hone/base/input_file.h"
#include "hone/base/memory_bound.h"
#include "hone/base/output_file.h"
#include "hone/base/temporary_name.h"

namespace hone {
namespace {

constexpr size_t kChunk = size_t{1} << 16;

Status cannot(std::string_view action, const std::string& path, int error_number) {
  const Code code = error_number == ENOENT || error_number == ENOTDIR ? Code::kNotFound : Code::kIo;
  return error(code, "cannot {} '{}': {}", action, path, errno_text(error_number));
}

}  // namespace

std::string errno_text(int error_number) {
  std::string text = std::generic_category().message(error_number);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

bool file_exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

Result<std::string> read_file(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const Descriptor file, open_input(path, Pipes::kAllowed));
  const int fd = file.get();
  struct stat info;
  if (::fstat(fd, &info) != 0) return cannot("read", path, errno);
  HONE_RETURN_IF_ERROR(check_input_bytes(path, info.st_size));
  const AllocatesFor purpose(path);
  std::string contents;
  size_t used = 0;
  bool waits = false;
  // One byte more than the file says, so that its end is seen by the first short read; pipes say 0
  // and grow.
  size_t chunk = info.st_size > 0 ? static_cast<size_t>(info.st_size) + 1 : kChunk;
  for (;;) {
    contents.resize(used + chunk);
    const ssize_t got = ::read(fd, contents.data() + used, chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN && !waits) {  // its writer has nothing to say yet
      waits = ::fcntl(fd, F_SETFL, 0) == 0;
      if (waits) continue;
      errno = EAGAIN;
    }
    if (got < 0) return cannot("read", path, errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    HONE_RETURN_IF_ERROR(check_input_bytes(path, static_cast<int64_t>(used), "more than "));
    chunk = contents.size() > used ? contents.size() - used : std::max(used, kChunk);
  }
  if (used == 0 && !waits && S_ISFIFO(info.st_mode))
    return invalid("cannot read '{}': it is a pipe that nobody writes to, expected a file", path);
  contents.resize(used);
  return contents;
}

Status write_file_atomic(const std::string& path, std::string_view contents, unsigned mode) {
  HONE_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path, mode));
  HONE_RETURN_IF_ERROR(file.write(contents));
  return file.finish();
}

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

Result<TempDir> TempDir::create(std::string_view prefix, std::string_view parent) {
  clear_stale_files(std::string(parent));
  for (int tries = 0;; ++tries) {
    std::string path = fmt::format("{}/{}", parent, temporary_name(prefix));
    if (::mkdir(path.c_str(), 0700) != 0) {
      if (errno == EEXIST && tries < kMostNames) continue;
      return cannot("make the directory", path, errno);
    }
    const int lock = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // A file system without such locks leaves it to the name to say whose the folder is.
    if (lock >= 0) (void)::flock(lock, LOCK_EX | LOCK_NB);
    return TempDir(std::move(path), lock);
  }
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

TempDir::~TempDir() {
  std::error_code ignored;  // leaving rubbish behind is no reason to fail
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace hone
