#include "hone/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "hone/base/file.h"

namespace hone {

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Descriptor> open_input(const std::string& path, Pipes pipes) {
  const auto cannot = [&](int error_number) {
    const Code code =
        error_number == ENOENT || error_number == ENOTDIR ? Code::kNotFound : Code::kIo;
    return error(code, "cannot read '{}': {}", path, errno_text(error_number));
  };
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info;
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return cannot(errno);
  const bool pipe = S_ISFIFO(info.st_mode);
  if (S_ISREG(info.st_mode) || (pipe && pipes == Pipes::kAllowed)) return file;
  const char* found = pipe ? "pipe" : S_ISDIR(info.st_mode) ? "directory" : "device";
  return invalid("cannot read '{}': it is a {}, expected a file", path, found);
}

}  // namespace hone
