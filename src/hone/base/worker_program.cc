#include "hone/base/worker_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "hone/base/installation.h"

namespace hone {
namespace {

constexpr const char* kVariable = "HONE_WORKER";

bool is_program(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// A worker that came with this code is of the same version, so it comes before that of the
// configured prefix.
std::vector<std::string> installed_workers() {
  std::vector<std::string> places = installed_places("libexec/hone/hone-worker");
  const std::string beside = beside_own_file("hone-worker");
  if (!beside.empty()) places.insert(places.end() - 1, beside);
  return places;
}

Result<std::vector<std::string>> places_to_try(const std::string& given) {
  if (!given.empty()) return std::vector{given};
  const char* const named = std::getenv(kVariable);
  if (named == nullptr || *named == '\0') return installed_workers();
  // Relative to the current folder it could be anybody's.
  if (*named != '/') return invalid("{}: '{}', expected an absolute path", kVariable, named);
  return std::vector<std::string>{named};
}

}  // namespace

Result<std::string> find_worker_program(const std::string& given) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> places, places_to_try(given));
  const auto found = std::find_if(places.begin(), places.end(), is_program);
  if (found != places.end()) return *found;
  return error(Code::kNotFound,
               "cannot measure: there is no worker program at {}; {} may name another",
               fmt::join(places, ", "), kVariable);
}

}  // namespace hone
