// base/file_roles.h - which files a command reads and which it writes. Nothing that is read is
// overwritten, and no file is written for two purposes. Files are the same by what they are, not by
// name: through links, also hard ones, and also if there is nothing there yet.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone {

struct FileIdentity {
  uint64_t device = 0, inode = 0;  // of the file; of its folder if it is not there yet
  std::string name;                // in that folder
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};
// Nothing for a device, a pipe or a folder, and where there is no such folder.
[[nodiscard]] std::optional<FileIdentity> identity_of(const std::string& path);

class FileRoles {
 public:
  // `what` is what asks for the file, for messages: "--output".
  void read(std::string what, const std::string& path);
  void updated(std::string what, const std::string& path);  // read and written: a database
  void written(std::string what, const std::string& path);
  void written(std::string what, int descriptor);  // an open file, such as standard output
  [[nodiscard]] Status check() const;

 private:
  enum class Use { kRead, kUpdated, kWritten };
  struct Entry {
    Use use;
    std::string what, path;
    FileIdentity identity;
  };
  void add(Use use, std::string what, const std::string& path,
           std::optional<FileIdentity> identity);
  std::vector<Entry> entries_;
};

}  // namespace hone
