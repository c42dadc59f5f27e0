#include "hone/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace hone {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { (void)close_now(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool close_now() {  // false with errno set if the system reports a late write error
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

Status cannot(std::string_view action, const std::string& path, int error_number) {
  const Code code = error_number == ENOENT || error_number == ENOTDIR ? Code::kNotFound : Code::kIo;
  return error(code, "cannot {} '{}': {}", action, path, errno_text(error_number));
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

Status write_in_place(const std::string& path, std::string_view contents) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), contents) || !file.close_now())
    return cannot("write", path, errno);
  return ok_status();
}

// The file that `path` leads to; `path` itself where nothing is there yet.
std::string resolved(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) ? std::string(buffer) : path;
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
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return cannot("read", path, errno);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return cannot("read", path, errno);
  if (S_ISDIR(info.st_mode))
    return invalid("cannot read '{}': it is a directory, expected a file", path);
  std::string contents;
  size_t used = 0;
  // One byte more than the file says, so that its end is seen by the first short read; pipes say 0
  // and grow.
  size_t chunk = info.st_size > 0 ? static_cast<size_t>(info.st_size) + 1 : size_t{1} << 16;
  for (;;) {
    contents.resize(used + chunk);
    const ssize_t got = ::read(file.get(), contents.data() + used, chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("read", path, errno);
    if (got == 0) break;
    used += static_cast<size_t>(got);
    chunk = contents.size() > used ? contents.size() - used : size_t{1} << 16;
  }
  contents.resize(used);
  return contents;
}

Status write_file_atomic(const std::string& path, std::string_view contents, unsigned mode) {
  const std::string target = resolved(path);
  struct stat info;
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return invalid("cannot write '{}': it is a directory, expected a file", path);
  if (exists && !S_ISREG(info.st_mode)) return write_in_place(path, contents);
  if (exists && ::access(target.c_str(), W_OK) != 0) return cannot("write", path, errno);

  static std::atomic<uint64_t> counter = 0;
  const std::string temporary = fmt::format("{}.tmp{}.{}", target, ::getpid(), counter++);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.get() < 0) return cannot("write", path, errno);
  const bool written = (!exists || ::fchmod(file.get(), info.st_mode & 07777) == 0) &&
                       write_all(file.get(), contents) && ::fsync(file.get()) == 0 &&
                       file.close_now() && ::rename(temporary.c_str(), target.c_str()) == 0;
  if (written) return ok_status();
  const int error_number = errno;
  ::unlink(temporary.c_str());
  return cannot("write", path, error_number);
}

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

Result<TempDir> TempDir::create(std::string_view prefix, std::string_view parent) {
  // Whose it is stands in the name, for who ends this process from outside
  // (tools/hone/interrupt.cc).
  std::string name = fmt::format("{}/{}.hone-{}-XXXXXX", parent, prefix, ::getpid());
  if (::mkdtemp(name.data()) == nullptr) return cannot("make the directory", name, errno);
  return TempDir(std::move(name));
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempDir::~TempDir() {
  if (path_.empty()) return;
  std::error_code ignored;  // leaving rubbish behind is no reason to fail
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hone
