// db/postgres_store.h - a store on a PostgreSQL server, for many tuners on many machines: the same
// tables as the SQLite store's (docs/db_format.md). Only built where libpq is.
#pragma once

#include <memory>
#include <string_view>

#include "hone/base/status.h"
#include "hone/db/store.h"

namespace hone::db {

// `uri`: postgres://user:password@host:port/database. The tables are made if they are missing and
// `options` allow it; max_bytes means nothing here.
[[nodiscard]] Result<std::unique_ptr<Store>> open_postgres_store(std::string_view uri,
                                                                 const StoreOptions& options = {});

}  // namespace hone::db
