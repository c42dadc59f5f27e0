// base/file_testing.h - files that tests read.
#pragma once

#include <filesystem>
#include <string>

#include "hone/base/installation.h"

namespace hone {

// Returns the path of a file of the build folder; where that is not there, as for a test of the
// portable archive, that of the file of its name beside the test's program.
inline std::string test_file(const std::string& built) {
  if (std::filesystem::exists(built)) return built;
  return beside_own_file(std::filesystem::path(built).filename().string());
}

}  // namespace hone
