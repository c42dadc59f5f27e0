// base/file.h - whole files are read and written here. A write is atomic: a reader sees the old
// file or the new one, never a part, also after a crash or a full disk (output_file.h). Every error
// names the path and what the system said.
#pragma once

#include <string>
#include <string_view>

#include "hone/base/status.h"

namespace hone {

// Reads a file, or a pipe that somebody writes to, such as a shell's <(command). The error is
// kNotFound if there is no such file; kInvalid for a directory, a device, a socket, a pipe without
// a writer and contents that take more memory than most_input_bytes() (memory_bound.h); else kIo.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// Writes the file as OutputFile does. A new file gets the permissions `mode` less the umask.
Status write_file_atomic(const std::string& path, std::string_view contents, unsigned mode = 0666);

[[nodiscard]] bool file_exists(const std::string& path);

// Returns what the system says about an errno in the style of our messages, such as "no space left
// on device".
[[nodiscard]] std::string errno_text(int error_number);

// Returns $TMPDIR, or /tmp where that is not set.
[[nodiscard]] std::string temporary_folder();

// A new directory in `parent` that only this user may read. It is removed with all its contents
// when the object is destroyed, or by a later process if this one is killed (temporary_name.h).
class TempDir {
 public:
  [[nodiscard]] static Result<TempDir> create(std::string_view prefix = "hone",
                                              std::string_view parent = temporary_folder());
  TempDir(TempDir&& other) noexcept
      : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {
    other.path_.clear();
  }
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const {
    return fmt::format("{}/{}", path_, name);
  }

 private:
  TempDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_ = -1;  // the open directory, whose lock says that its owner is alive
};

}  // namespace hone
