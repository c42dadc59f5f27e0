// db/line_check.h - the imports of db/json_lines.h and db/copy.h for lines from anywhere, of which
// more is asked than a store asks for.
#pragma once

#include <functional>
#include <string>

#include "hone/db/copy.h"

namespace hone::db {

// What else a record of a file has to be. Its error begins with the file and the line.
using LineCheck = std::function<Status(const trial::Record&)>;

[[nodiscard]] Status for_each_json_line(const std::string& path,
                                        const std::function<Status(trial::Record&&)>& visit,
                                        const LineCheck& check);
// Nothing of the file is added if a line is refused.
[[nodiscard]] Result<Copied> import_json_lines(const std::string& path, TrialStore& to,
                                               const LineCheck& check);

}  // namespace hone::db
