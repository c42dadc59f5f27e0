#include "hone/base/installation.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>

namespace hone {
namespace {

namespace fs = std::filesystem;

// Reads "7f00-7f80 r-xp 00001000 08:01 1234    /path" of /proc/self/maps. Returns the path if the
// range contains the address.
std::string path_if_within(std::string_view line, uintptr_t address) {
  const char* const end = line.data() + line.size();
  uintptr_t from = 0, to = 0;
  const auto first = std::from_chars(line.data(), end, from, 16);
  if (first.ptr == end || *first.ptr != '-') return "";
  if (std::from_chars(first.ptr + 1, end, to, 16).ec != std::errc()) return "";
  const size_t path = line.find('/');
  return from <= address && address < to && path != line.npos ? std::string(line.substr(path)) : "";
}

// The name that dladdr() has is the one that the loader was given: it may be relative to a folder
// that is not the current one any more, and for a program it is what the caller chose as argv[0].
std::string find_own_file() {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<uintptr_t>(&own_file);
  std::string line, path;
  while (path.empty() && std::getline(maps, line)) path = path_if_within(line, address);
  return path;
}

std::string join(const fs::path& folder, std::string_view relative) {
  return (folder / relative).lexically_normal().string();
}

fs::path own_folder() { return fs::path(own_file()).parent_path(); }

}  // namespace

std::string own_file() {
  static const std::string file = find_own_file();
  return file;
}

std::vector<std::string> installed_places(std::string_view relative) {
  std::vector<std::string> places = {join(HONE_INSTALL_PREFIX, relative)};
  if (!own_file().empty()) places.insert(places.begin(), join(own_folder() / "..", relative));
  return places;
}

std::string beside_own_file(std::string_view name) {
  return own_file().empty() ? "" : join(own_folder(), name);
}

}  // namespace hone
