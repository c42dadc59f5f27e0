// db/json_lines.h - records as JSON, one a line: what is shipped, exported and imported. Numbers
// are written so that they read back the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/db/record.h"

namespace hone::db {

// Without the id, which a store gives; no line break.
[[nodiscard]] std::string to_json_line(const Record& record);
// Strict: an unknown or missing field, a wrong type or an unknown outcome is an error naming it.
[[nodiscard]] Result<Record> parse_json_line(std::string_view line);
// Every line of a text; blank ones are skipped. `name` and the line's number begin an error.
[[nodiscard]] Result<std::vector<Record>> parse_json_lines(std::string_view text,
                                                           std::string_view name);

}  // namespace hone::db
