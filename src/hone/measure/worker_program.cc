#include "hone/measure/worker_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "hone/base/installation.h"

namespace hone::measure {
namespace {

constexpr const char* kVariable = "HONE_WORKER";

bool is_program(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> places_to_try(const std::string& given) {
  if (!given.empty()) return {given};
  const char* const named = std::getenv(kVariable);
  if (named != nullptr && *named != '\0') return {named};
  std::vector<std::string> places = installed_places("libexec/hone/hone-worker");
  places.push_back(beside_own_file("hone-worker"));
  return places;
}

}  // namespace

Result<std::string> find_worker_program(const std::string& given) {
  const std::vector<std::string> places = places_to_try(given);
  const auto found = std::find_if(places.begin(), places.end(), is_program);
  if (found != places.end()) return *found;
  return error(Code::kNotFound,
               "cannot measure: there is no worker program at {}; {} may name another",
               fmt::join(places, ", "), kVariable);
}

}  // namespace hone::measure
