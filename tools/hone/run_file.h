// tools/hone/run_file.h - reads the files that `hone tune --report` writes (docs/user/report.md).
// They may come from anybody, so each field that a report shows is checked.
#pragma once

#include <string>

#include "hone/base/status.h"

#include "json_text.h"

namespace hone::tool {

// Reads the text of a run file. The error names the file and the field.
[[nodiscard]] Result<Json> parse_run(const std::string& path, const std::string& text);

}  // namespace hone::tool
