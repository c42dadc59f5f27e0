// db/line_check.h - the imports of db/json_lines.h and db/copy.h with a further check of each line,
// for files from anywhere.
#pragma once

#include <functional>
#include <string>

#include "hone/db/copy.h"

namespace hone::db {

// A further requirement of a record in a file. Its error is prefixed with the file and the line.
using LineCheck = std::function<Status(const trial::Record&)>;

[[nodiscard]] Status for_each_json_line(const std::string& path,
                                        const std::function<Status(trial::Record&&)>& visit,
                                        const LineCheck& check);
// Imports a file. If a line is refused, nothing of the file is added.
[[nodiscard]] Result<CopiedTrials> import_json_lines(const std::string& path, TrialStore& to,
                                                     const LineCheck& check);

}  // namespace hone::db
