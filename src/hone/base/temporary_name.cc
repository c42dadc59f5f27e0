#include "hone/base/temporary_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".hone-";
constexpr size_t kRandom = 8;  // letters

// When a process began, in ticks since the machine was booted: field 22 of /proc/PID/stat. Nothing
// if there is no such process.
std::optional<uint64_t> start_of(int64_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return std::nullopt;
  char text[1024];
  const size_t length = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  std::string_view rest(text, length);
  // The second field is the program's name in parentheses, which may hold any character.
  rest.remove_prefix(std::min(rest.rfind(')') + 1, rest.size()));
  constexpr int kSkipped = 20;  // fields 3 to 21, and the blank before the first
  for (int i = 0; i < kSkipped; ++i) {
    const size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  uint64_t ticks = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  if (code != std::errc()) return std::nullopt;
  return ticks;
}

struct Maker {
  int64_t pid = 0;
  uint64_t start = 0;
};

bool take_number(std::string_view& text, auto& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end == text.data() + text.size() || *end != '-') return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return true;
}

// Returns nothing if the name is not one of temporary_name().
std::optional<Maker> maker_of(std::string_view name) {
  const size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  name.remove_prefix(mark + kMark.size());
  Maker maker;
  if (!take_number(name, maker.pid) || !take_number(name, maker.start)) return std::nullopt;
  const bool random = name.size() == kRandom &&
                      name.find_first_not_of("abcdefghijklmnop") == std::string_view::npos;
  return random && maker.pid > 0 ? std::optional(maker) : std::nullopt;
}

// Calls f(path, maker) for what has a name of temporary_name() in a folder, if that can be read.
template <typename F>
void for_each_temporary(const std::string& folder, const F& f) {
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (const auto maker = maker_of(it->path().filename().string())) f(it->path(), *maker);
  }
}

void remove_if_left(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat held, named;
  const bool own = ::fstat(fd, &held) == 0 && held.st_uid == ::geteuid() &&
                   (S_ISREG(held.st_mode) || S_ISDIR(held.st_mode));
  const bool left = own && ::flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                    ::lstat(path.c_str(), &named) == 0 && named.st_dev == held.st_dev &&
                    named.st_ino == held.st_ino;
  std::error_code ignored;
  if (left) fs::remove_all(path, ignored);
  ::close(fd);
}

// Folders in which this process made temporary files or looked for old ones. Never destroyed: a
// process that is told to end uses them while others of its threads run.
std::set<std::string>& folders() {
  static auto* const all = new std::set<std::string>;
  return *all;
}
std::mutex& folders_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

}  // namespace

std::string temporary_name(std::string_view prefix) {
  const uint64_t start = start_of(::getpid()).value_or(0);
  unsigned char bytes[kRandom / 2] = {};
  (void)!::getrandom(bytes, sizeof bytes, 0);
  std::string random;
  for (const unsigned char byte : bytes) {
    random += static_cast<char>('a' + byte % 16);
    random += static_cast<char>('a' + byte / 16);
  }
  return fmt::format("{}{}{}-{}-{}", prefix, kMark, ::getpid(), start, random);
}

void clear_stale_files(const std::string& folder) {
  {
    const std::lock_guard<std::mutex> lock(folders_mutex());
    if (!folders().insert(folder).second) return;
  }
  for_each_temporary(folder, [](const fs::path& path, const Maker& maker) {
    if (start_of(maker.pid) != maker.start) remove_if_left(path);
  });
}

void remove_own_temporaries() {
  const std::unique_lock<std::mutex> lock(folders_mutex(), std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const std::string& folder : folders()) {
    for_each_temporary(folder, [](const fs::path& path, const Maker& maker) {
      std::error_code ignored;
      if (maker.pid == ::getpid()) fs::remove_all(path, ignored);
    });
  }
}

}  // namespace hone
