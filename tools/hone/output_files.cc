#include "output_files.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>

#include "hone/base/hash.h"
#include "hone/base/printable.h"

namespace hone::tool {
namespace {

constexpr size_t kMostBytes = 255;   // of one component of a path, on all usual file systems
constexpr size_t kKeptBytes = 200;   // of a name that is cut
constexpr size_t kPathBytes = 2048;  // half of what Linux takes, so that the folder has room, too

std::string replaced(const std::string& name, std::string_view slash, std::string_view percent) {
  std::string text;
  for (const char c : name) {
    if (c == '/') {
      text += slash;
    } else if (c == '%') {
      text += percent;
    } else {
      text += c;
    }
  }
  return text;
}

std::string flat(const std::string& name) { return replaced(name, "_", "%") + ".npy"; }

// Whether a name with folders in it stays below the folder that it is put in, and says so plainly.
bool is_path(std::string_view path) {
  if (path.size() > kPathBytes) return false;
  while (true) {
    const size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == ".." || part.size() > kMostBytes) return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

class Files {
 public:
  // False if the path is taken, or a folder where it has a file or the other way round.
  bool take(const std::string& path) {
    if (files_.contains(path) || folders_.contains(path)) return false;
    std::set<std::string> above;
    for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      above.insert(path.substr(0, at));
      if (files_.contains(path.substr(0, at))) return false;
    }
    folders_.merge(above);
    return files_.insert(path).second;
  }

 private:
  std::set<std::string> files_, folders_;
};

}  // namespace

std::vector<std::string> output_files(const std::vector<std::string>& names) {
  std::map<std::string, int> sharing;
  for (const std::string& name : names) ++sharing[flat(name)];
  std::vector<std::string> files(names.size());
  Files taken;
  const auto give = [&](size_t i, const std::string& path) {
    if (files[i].empty() && is_path(path) && taken.take(path)) files[i] = path;
  };
  for (size_t i = 0; i < names.size(); ++i) {
    const bool keeps = names[i].find('/') == std::string::npos || sharing[flat(names[i])] == 1;
    if (keeps) give(i, flat(names[i]));
  }
  for (size_t i = 0; i < names.size(); ++i) give(i, names[i] + ".npy");
  for (size_t i = 0; i < names.size(); ++i) give(i, replaced(names[i], "%2F", "%25") + ".npy");
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string flat_name = replaced(names[i], "_", "%");
    const std::string_view begin = whole_characters(flat_name, kKeptBytes);
    for (uint64_t seed = 0; files[i].empty(); ++seed)
      give(i, fmt::format("{}~{}.npy", begin, hash_hex(hash_string(names[i], seed))));
  }
  return files;
}

}  // namespace hone::tool
