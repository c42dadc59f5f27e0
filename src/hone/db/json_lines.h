// db/json_lines.h - records as text, one JSON object per line, as they are shipped, exported and
// imported (docs/formats/db_format.md). Numbers are read back exactly.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/trial/record.h"

namespace hone::db {

// Returns the line without the id, which belongs to a store, and without a line end. Bytes that are
// not UTF-8 are replaced.
[[nodiscard]] std::string to_json_line(const trial::Record& record);
// Parses a line strictly: every field must be there, with its type, and no other; the record must
// pass check().
[[nodiscard]] Result<trial::Record> parse_json_line(std::string_view line);
// Parses every line of a text and skips blank ones. Errors begin with `name` and the line's number.
[[nodiscard]] Result<std::vector<trial::Record>> parse_json_lines(std::string_view text,
                                                                  std::string_view name);
// Parses a file with one line in memory at a time, until `visit` fails.
[[nodiscard]] Status for_each_json_line(const std::string& path,
                                        const std::function<Status(trial::Record&&)>& visit);

}  // namespace hone::db
