// tools/hone/output_files.h - the files that a run's outputs are kept in, by the outputs' names.
#pragma once

#include <string>
#include <vector>

namespace hone::tool {

// For each name a path below the folder, all of them different: NAME.npy with '_' for each '/'.
// Where names would share a file, one without '/' keeps it and the others are NAME.npy in folders
// of their own; where a name is no such path, '/' is written %2F. What a file system finds too long
// is cut, and ends in a hash of the name.
[[nodiscard]] std::vector<std::string> output_files(const std::vector<std::string>& names);

}  // namespace hone::tool
