// db/json_lines.h - records as text, one JSON object a line: for export, import and other programs
// (docs/db_format.md). Numbers survive the way there and back bit by bit.
#pragma once

#include <string>
#include <string_view>

#include "hone/db/record.h"

namespace hone::db {

// Without the id, which is a store's own, and without a line end. Bytes that are no UTF-8 are
// replaced.
[[nodiscard]] std::string to_json_line(const Record& record);
// Strict: every field must be there, with its type, and no other; the record must pass check().
[[nodiscard]] Result<Record> parse_json_line(std::string_view line);

}  // namespace hone::db
