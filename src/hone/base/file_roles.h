// base/file_roles.h - checks that a command overwrites nothing that it reads, and writes no file
// for two purposes. Two paths are the same file if they lead to the same inode, also through
// symbolic or hard links, and also if no file is there yet.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"

namespace hone {

struct FileIdentity {
  uint64_t device = 0, inode = 0;  // identify the file, or its folder if the file is not there yet
  std::string name;                // name in that folder; empty if the file is there
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};
// Returns nothing for a device, a pipe or a folder, and if the path's folder does not exist.
[[nodiscard]] std::optional<FileIdentity> identity_of(const std::string& path);

class FileRoles {
 public:
  // The parameter `what` names who asks for the file, for messages: "--output".
  void read(std::string what, const std::string& path);
  void updated(std::string what,
               const std::string& path);  // a file that is read and written, such as a database
  void written(std::string what, const std::string& path);
  void written(std::string what, int descriptor);  // a file that is open, such as standard output
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
