#include "hone/backend/gpu/code_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "hone/base/file.h"
#include "hone/base/hash.h"

namespace hone::backend::gpu {
namespace {

constexpr std::string_view kEnding = ".code";
constexpr char kMagic[8] = {'H', 'O', 'N', 'E', 'K', 'E', 'P', '1'};
constexpr int64_t kMostFile = 64 << 20;  // bytes of a file; more is damage
constexpr int64_t kTouchSeconds = 3600;  // the time of a file's use is kept as exactly as this

struct Header {
  char magic[8];
  uint64_t first, second;  // key
  uint64_t bytes, checksum;
};

// Returns the contents of a file that is no link.
std::optional<std::string> contents_of(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> contents;
  struct stat about = {};
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= kMostFile) {
    contents.emplace(static_cast<size_t>(about.st_size), '\0');
    size_t done = 0;
    while (done < contents->size()) {
      const ssize_t got = read(fd, contents->data() + done, contents->size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    contents->resize(done);
    if (time(nullptr) - about.st_mtime > kTouchSeconds) futimens(fd, nullptr);
  }
  close(fd);
  return contents;
}

bool is_absolute(const char* path) { return path != nullptr && *path == '/'; }

}  // namespace

std::string code_folder() {
  if (const char* named = std::getenv("HONE_CODE_CACHE"); named != nullptr && *named != '\0')
    return is_absolute(named) ? named : "";
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); is_absolute(cache))
    return std::string(cache) + "/hone/code";
  const char* home = std::getenv("HOME");
  return is_absolute(home) ? std::string(home) + "/.cache/hone/code" : "";
}

std::string CodeFiles::path(const Key& key) const {
  return fmt::format("{}/{}{}{}", folder_, hash_hex(key.first), hash_hex(key.second), kEnding);
}

std::optional<std::string> CodeFiles::find(const Key& key) const {
  if (!check_folder().ok()) return std::nullopt;
  const std::string file = path(key);
  const std::optional<std::string> contents = contents_of(file);
  if (!contents) return std::nullopt;
  Header header = {};
  if (contents->size() >= sizeof header) std::memcpy(&header, contents->data(), sizeof header);
  const std::string_view bytes =
      std::string_view(*contents).substr(std::min(sizeof header, contents->size()));
  const bool good = std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
                    header.first == key.first && header.second == key.second &&
                    header.bytes == bytes.size() && header.checksum == hash_string(bytes);
  if (good) return std::string(bytes);
  unlink(file.c_str());
  return std::nullopt;
}

Status CodeFiles::check_folder() const {
  struct stat about = {};
  if (lstat(folder_.c_str(), &about) != 0)
    return error(Code::kIo, "cannot create {}: {}", folder_, errno_text(errno));
  if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid() ||
      (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return invalid("{}: expected a folder that only this user may write to", folder_);
  return ok_status();
}

Status CodeFiles::keep(const Key& key, std::string_view bytes) {
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path(), failure);
  mkdir(folder_.c_str(), 0700);
  HONE_RETURN_IF_ERROR(check_folder());
  Header header = {{}, key.first, key.second, bytes.size(), hash_string(bytes)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::string contents(reinterpret_cast<const char*>(&header), sizeof header);
  HONE_RETURN_IF_ERROR(write_file_atomic(path(key), contents.append(bytes), 0600));
  const std::lock_guard lock(mutex_);
  const bool look = unchecked_bytes_ < 0 || unchecked_bytes_ > max_bytes_ / 16;
  unchecked_bytes_ = look ? 0 : unchecked_bytes_ + std::ssize(bytes);
  if (look) make_room();
  return ok_status();
}

void CodeFiles::make_room() const {
  struct File {
    std::filesystem::file_time_type used;
    int64_t bytes;
    std::filesystem::path path;
  };
  std::vector<File> files;
  int64_t all = 0;
  std::error_code failure;
  for (auto it = std::filesystem::directory_iterator(folder_, failure);
       !failure && it != std::filesystem::directory_iterator(); it.increment(failure)) {
    if (it->path().extension() != kEnding) continue;
    std::error_code gone;  // another process may have removed it
    const auto used = it->last_write_time(gone);
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    files.push_back({used, bytes, it->path()});
    all += bytes;
  }
  if (all <= max_bytes_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (all <= max_bytes_ / 4 * 3) break;
    std::filesystem::remove(file.path, failure);
    all -= file.bytes;
  }
}

}  // namespace hone::backend::gpu
