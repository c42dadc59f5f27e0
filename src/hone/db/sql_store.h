// db/sql_store.h - a store in a database that understands SQL (internal to db).
#pragma once

#include <memory>

#include "hone/db/sql_database.h"
#include "hone/db/store.h"

namespace hone::db {

[[nodiscard]] std::unique_ptr<Store> make_sql_store(std::unique_ptr<Database> database);

}  // namespace hone::db
