// db/json_lines.h - records as text, one JSON object a line: what is shipped, exported and imported
// (docs/formats/db_format.md). Numbers survive the way there and back bit by bit.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/trial/record.h"

namespace hone::db {

// Without the id, which is a store's own, and without a line end. Bytes that are no UTF-8 are
// replaced.
[[nodiscard]] std::string to_json_line(const trial::Record& record);
// Strict: every field must be there, with its type, and no other; the record must pass check().
[[nodiscard]] Result<trial::Record> parse_json_line(std::string_view line);
// Every line of a text; blank ones are skipped. `name` and the line's number begin an error.
[[nodiscard]] Result<std::vector<trial::Record>> parse_json_lines(std::string_view text,
                                                                  std::string_view name);
// The same of a file, one line in memory at a time; ends when `visit` fails.
[[nodiscard]] Status for_each_json_line(const std::string& path,
                                        const std::function<Status(trial::Record&&)>& visit);

}  // namespace hone::db
