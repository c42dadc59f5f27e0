// backend/gpu/code_files.h - code that was compiled, kept in files so that later processes need not
// compile the same again. Each file is named by a hash of all that decides the code. Processes may
// share the folder: a file appears as a whole, and one that is damaged counts as missing. If there
// is too much, what was used longest ago is removed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "hone/base/status.h"
#include "hone/ir/program_hash.h"

namespace hone::backend::gpu {

class CodeFiles {
 public:
  using Key = ir::Identity;
  // The folder is created when something is kept. One that other users may write to is not used.
  explicit CodeFiles(std::string folder, int64_t max_bytes = 256 << 20)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  [[nodiscard]] std::optional<std::string> find(const Key& key) const;
  // Keeps the bytes. An error is for the log only: the next process compiles once more.
  Status keep(const Key& key, std::string_view bytes);

 private:
  [[nodiscard]] std::string path(const Key& key) const;
  [[nodiscard]] Status check_folder() const;
  void make_room() const;

  const std::string folder_;
  const int64_t max_bytes_;
  std::mutex mutex_;              // protects unchecked_bytes_
  int64_t unchecked_bytes_ = -1;  // written since the size of all was looked at; -1: never looked
};

// Returns the folder of this user: what HONE_CODE_CACHE names, else hone/code in XDG_CACHE_HOME or
// in ~/.cache. It is empty if HONE_CODE_CACHE is "off" or there is no such place.
[[nodiscard]] std::string code_folder();

}  // namespace hone::backend::gpu
