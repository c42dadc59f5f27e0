// db/sqlite_schema.h - checks that the tables of a file are those that Hone makes. A file from
// elsewhere may claim to be a database of Hone and have a view in the place of a table, a trigger,
// a computed column or a type of its own; such a file is refused before any of it is used.
#pragma once

#include "hone/base/status.h"
#include "hone/db/sqlite.h"

namespace hone::db {

// Compares every table, index, view and trigger with those that the migrations of db/schema.h make
// up to this version. The error names the first that differs. SQLite's internal tables are ignored.
[[nodiscard]] Status check_schema(Connection& db, int version);

}  // namespace hone::db
