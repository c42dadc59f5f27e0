// db/sqlite_schema.h - whether the tables of a file are those that Hone makes. A file from
// elsewhere may call itself a database of Hone and have a view in the place of a table, a trigger,
// a computed column or a type of its own; such a file is refused before any of it is used.
#pragma once

#include "hone/base/status.h"
#include "hone/db/sqlite.h"

namespace hone::db {

// Compares every table, index, view and trigger with what the migrations of db/schema.h make up to
// this format version; names the first that differs. What SQLite keeps for itself does not count.
[[nodiscard]] Status check_schema(Connection& db, int version);

}  // namespace hone::db
