// base/output_file.h - writes every file that a user names. A reader sees the old file or the new
// one, never a part, also after a crash or a full disk: the bytes go to a temporary file in the
// same folder, which is flushed to the disk and renamed, and then the folder is flushed. A symbolic
// link is kept, and the file that it leads to is replaced. A device or a pipe is written, not
// replaced. An existing file keeps its permissions and, if that is allowed, its owner.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "hone/base/status.h"

namespace hone {

class OutputFile {
 public:
  // Begins a file. A new file gets the permissions `mode` less the umask. No file has its name
  // before finish().
  [[nodiscard]] static Result<OutputFile> create(const std::string& path, unsigned mode = 0666);
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        target_(std::move(other.target_)),
        partial_(std::move(other.partial_)),
        fd_(std::exchange(other.fd_, -1)) {
    other.partial_.clear();
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // leaves the old file as it was unless finish() was called
  Status write(std::string_view contents);
  Status finish();

 private:
  OutputFile(std::string path, std::string target)
      : path_(std::move(path)), target_(std::move(target)) {}
  [[nodiscard]] Status failure(int error_number) const;
  std::string path_;     // path as the user named it
  std::string target_;   // path that its symbolic links lead to
  std::string partial_;  // path of the temporary file; empty if the target is written in place
  int fd_ = -1;
};

// Moves the finished file `from` to `to` as OutputFile would write it, or copies it if `to` is a
// device, a pipe or on another disk. With `sync`, it returns when the file is on the disk.
Status publish_file(const std::string& from, const std::string& to, bool sync = true);

// Returns the path that all symbolic links of `path` lead to, also if there is no file at their end
// yet.
[[nodiscard]] std::string link_target(const std::string& path);

// Returns whether the path is something that is neither a file nor a folder. It is then written in
// place.
[[nodiscard]] bool is_stream(const std::string& path);

}  // namespace hone
