// base/file.h - whole files in and out. A write is atomic: a reader sees the old file or the new
// one, never a part, also after a crash or a full disk. Every error names the path and what the
// system said.
#pragma once

#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone {

// kNotFound if there is no such file, kInvalid for a directory, else kIo.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// Writes a temporary file beside `path`, flushes it to the disk and renames it. A symbolic link is
// followed; a device or a pipe (/dev/stdout) is written in place. An existing file keeps its
// permissions, a new one gets `mode` less the umask.
Status write_file_atomic(const std::string& path, std::string_view contents, unsigned mode = 0666);

[[nodiscard]] bool file_exists(const std::string& path);

// "no space left on device": what the system says about an errno, in the style of our messages.
[[nodiscard]] std::string errno_text(int error_number);

// $TMPDIR, else /tmp.
[[nodiscard]] std::string temporary_folder();

// A new directory in `parent`, removed with all its contents when the object dies.
class TempDir {
 public:
  [[nodiscard]] static Result<TempDir> create(std::string_view prefix = "hone",
                                              std::string_view parent = temporary_folder());
  TempDir(TempDir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const {
    return fmt::format("{}/{}", path_, name);
  }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace hone
